package builtin

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/transom-run/transom/tool"
)

// The requests have the names and fields of the published permission request
// types; TestPermissionShapes holds them against those.

type readRequest struct {
	Kind         string `json:"kind"` // "read"
	Intention    string `json:"intention"`
	Path         string `json:"path"`
	ResolvedPath string `json:"resolvedPath,omitempty"`
}

type writeRequest struct {
	Kind                    string  `json:"kind"` // "write"
	CanOfferSessionApproval bool    `json:"canOfferSessionApproval"`
	Intention               string  `json:"intention"`
	FileName                string  `json:"fileName"`
	Diff                    string  `json:"diff"`
	NewFileContents         *string `json:"newFileContents,omitempty"`
	ResolvedPath            string  `json:"resolvedPath,omitempty"`
}

type urlRequest struct {
	Kind      string `json:"kind"` // "url"
	Intention string `json:"intention"`
	URL       string `json:"url"`
}

// pathPrompt is how a person is shown that a path outside of the allowed
// directories is to be read.
type pathPrompt struct {
	Kind       string   `json:"kind"` // "path"
	AccessKind string   `json:"accessKind"`
	Paths      []string `json:"paths"`
}

type shellRequest struct {
	Kind                     string            `json:"kind"` // "shell"
	FullCommandText          string            `json:"fullCommandText"`
	Intention                string            `json:"intention"`
	Commands                 []shellCommand    `json:"commands"`
	CommandSegments          []shellSegment    `json:"commandSegments,omitempty"`
	PossiblePaths            []string          `json:"possiblePaths"`
	PossibleURLs             []shellURL        `json:"possibleUrls"`
	HasWriteFileRedirection  bool              `json:"hasWriteFileRedirection"`
	CanOfferSessionApproval  bool              `json:"canOfferSessionApproval"`
	ResolvedPaths            map[string]string `json:"resolvedPaths,omitempty"`
	ResolvedWorkingDirectory string            `json:"resolvedWorkingDirectory,omitempty"`
	Warning                  string            `json:"warning,omitempty"`
}

type shellPrompt struct {
	Kind                    string   `json:"kind"` // "commands"
	FullCommandText         string   `json:"fullCommandText"`
	Intention               string   `json:"intention"`
	CommandIdentifiers      []string `json:"commandIdentifiers"`
	CanOfferSessionApproval bool     `json:"canOfferSessionApproval"`
	Warning                 string   `json:"warning,omitempty"`
}

type shellCommand struct {
	Identifier string `json:"identifier"`
	ReadOnly   bool   `json:"readOnly"`
}

type shellSegment struct {
	Identifier      string `json:"identifier"`
	FullCommandText string `json:"fullCommandText"`
}

type shellURL struct {
	URL string `json:"url"`
}

// askNothing is the permission of a call that needs none.
func askNothing() (tool.Permission, error) { return tool.Permission{None: true}, nil }

// askRead is the question about reading one or more paths. The first is the one
// the request names; where any is outside, the request is about that one.
func (s *Set) askRead(call tool.Call, intention string, paths ...string) (tool.Permission, error) {
	dir := s.dir(call)
	var outside []string
	for _, p := range paths {
		if !s.allowed(resolve(p), dir) {
			outside = append(outside, p)
		}
	}
	named := paths[0]
	if len(outside) > 0 {
		named = outside[0]
	}
	req := readRequest{Kind: "read", Intention: intention, Path: valid(named), ResolvedPath: valid(resolve(named))}
	var p tool.Permission
	var err error
	if p.Request, err = json.Marshal(req); err != nil {
		return p, err
	}
	if len(outside) == 0 {
		return p, nil
	}
	p.Prompt, err = json.Marshal(pathPrompt{Kind: "path", AccessKind: "read", Paths: outside})
	return p, err
}

// askWrite is the question about a change of one file.
func (s *Set) askWrite(call tool.Call, req writeRequest) (tool.Permission, error) {
	var p tool.Permission
	req.Kind, req.CanOfferSessionApproval = "write", true
	switch {
	case !s.allowed(req.ResolvedPath, s.dir(call)):
		req.CanOfferSessionApproval = false
		req.Intention += " (outside of the working directory)"
	case !s.open(req.ResolvedPath, s.dir(call)):
		req.CanOfferSessionApproval = false
		req.Intention += " (a file that decides about more than itself)"
	}
	req.FileName, req.ResolvedPath = valid(req.FileName), valid(req.ResolvedPath)
	var err error
	p.Request, err = json.Marshal(req)
	return p, err
}

func askURL(u *url.URL, intention string) (tool.Permission, error) {
	raw, err := json.Marshal(urlRequest{Kind: "url", Intention: intention, URL: u.String()})
	return tool.Permission{Request: raw}, err
}

// valid makes text fit for JSON: file names and contents may hold any bytes.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// decode reads a call's arguments, which the tool's schema has been held against.
func decode(call tool.Call, into any) error {
	if err := json.Unmarshal(call.Arguments, into); err != nil {
		return fmt.Errorf("reading the arguments of %s: %w", call.Name, err)
	}
	return nil
}

// failure is a result that the model can do something about.
func failure(format string, args ...any) (tool.Result, error) {
	return tool.Result{Type: tool.Failure, Text: valid(fmt.Sprintf(format, args...))}, nil
}

// success is what most calls come to.
func success(text string) (tool.Result, error) { return tool.Result{Text: valid(text)}, nil }
