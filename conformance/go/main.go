// Command go is the Go host: it plays the cases it gets from the runner and
// reports what it saw. It judges nothing. See ../README.md for the steps.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
)

// order is a case as the runner hands it out.
type order struct {
	Over        string            `json:"over"`
	Server      serverInfo        `json:"server"`
	Home        string            `json:"home"`
	Model       modelInfo         `json:"model"`
	System      string            `json:"system"`
	Streaming   bool              `json:"streaming"`
	Tools       []toolInfo        `json:"tools"`
	Handlers    map[string][]step `json:"handlers"`
	Permissions map[string][]step `json:"permissions"`
	Host        []step            `json:"host"`
}

type serverInfo struct{ URL, Token string }

type modelInfo struct{ BaseURL, Name string }

type toolInfo struct {
	Name, Description    string
	Parameters           map[string]any
	Terminal, DeferNever bool
}

// step is one thing to do.
type step struct {
	Do       string   `json:"do"`
	Client   string   `json:"client"`
	As       string   `json:"as"`
	Prompt   string   `json:"prompt"`
	Mode     string   `json:"mode"`
	Type     string   `json:"type"`
	Call     string   `json:"call"`
	Count    int      `json:"count"`
	Gate     string   `json:"gate"`
	Tools    []string `json:"tools"`
	Continue bool     `json:"continue"`
	Text     string   `json:"text"`
	Kind     string   `json:"kind"`
}

// entry is the outcome of one step.
type entry struct {
	At    string `json:"at"`
	Do    string `json:"do"`
	As    string `json:"as"`
	Value any    `json:"value"`
	Error string `json:"error"`
}

// observation is what the runner gets back.
type observation struct {
	Log    []entry        `json:"log"`
	Events map[string]any `json:"events"`
	Error  string         `json:"error"`
}

func main() {
	for {
		var o order
		more, err := ask(http.MethodGet, "next", nil, &o)
		if err != nil {
			log.Fatal(err)
		}
		if !more {
			return
		}
		if _, err := ask(http.MethodPost, "result", newPlayer(o).play(), nil); err != nil {
			log.Fatal(err)
		}
	}
}

// ask talks to the runner. It returns false where there was nothing to say.
func ask(method, path string, body, into any) (bool, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return false, err
	}
	req, err := http.NewRequest(method, os.Getenv("CONFORMANCE_URL")+"/"+path, bytes.NewReader(text))
	if err != nil {
		return false, err
	}
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, err
	}
	defer reply.Body.Close()
	switch {
	case reply.StatusCode == http.StatusNoContent:
		return false, nil
	case reply.StatusCode != http.StatusOK:
		reason, _ := io.ReadAll(reply.Body)
		return false, fmt.Errorf("%s: %s", path, bytes.TrimSpace(reason))
	}
	return true, json.NewDecoder(reply.Body).Decode(into)
}
