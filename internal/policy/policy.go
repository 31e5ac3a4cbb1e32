// Package policy decides about permissions: whether a call needs to be asked
// about, and what an answer means. It is pure: no state, no clock, no I/O.
//
// The rule is deny by default: a call that needs approval runs only where
// somebody, now or earlier, approved it.
package policy

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// Texts that the model reads when a call was not approved. Hosts' recordings pin
// the first three (tests "permissions", "tools" and "multi-client" of the SDKs).
const (
	TextRejected     = "The user rejected this tool call."
	TextFeedback     = " User feedback: "
	TextNotAvailable = "Permission denied and could not request permission from user"
	textByRules      = "Permission denied by a rule of the host"
	textUnknown      = "Permission denied: the host's answer was not understood"
)

// Verdict is what an answer means for the call.
type Verdict string

// The verdicts.
const (
	Allow  Verdict = "allow"
	Deny   Verdict = "deny"   // the model is told and goes on
	Reject Verdict = "reject" // by a person, without a word: the turn ends
	None   Verdict = "none"   // no answer yet: the question stays open
)

// Decision is an answer to a permission question.
type Decision struct {
	Verdict Verdict
	// Kind is what clients see in permission.completed.
	Kind string
	// Text is what the model reads where the call is not allowed.
	Text     string
	Feedback string
	// Approval is what a lasting approval covers, as the host gave it.
	Approval json.RawMessage
	// LocationKey, Rules, Path and Message are what the host said besides, for
	// other clients.
	LocationKey string
	Rules       []json.RawMessage
	Path        string
	Message     string
	// Domain is the domain that a lasting approval of a URL covers.
	Domain string
	// Lasting: the approval holds for the rest of the session.
	Lasting bool
	// Unknown: the answer was of a kind that Transom does not know; it counts as
	// a denial and is reported.
	Unknown bool
}

// answer is the wire form of a decision.
type answer struct {
	Kind        string            `json:"kind"`
	Feedback    string            `json:"feedback"`
	Message     string            `json:"message"`
	Approval    json.RawMessage   `json:"approval"`
	LocationKey string            `json:"locationKey"`
	Rules       []json.RawMessage `json:"rules"`
	Path        string            `json:"path"`
	Domain      string            `json:"domain"`
}

// Parse reads a client's answer: the published decision kinds, in their asking
// form ("approve-once") and in their completed form ("approved"). Anything else
// is a denial.
func Parse(raw json.RawMessage) Decision {
	var a answer
	if json.Unmarshal(raw, &a) != nil {
		a = answer{}
	}
	switch a.Kind {
	case "approve-once", "approved", "approve-permanently":
		return Decision{Verdict: Allow, Kind: "approved"}
	case "approve-for-session", "approved-for-session":
		return Decision{Verdict: Allow, Kind: "approved-for-session", Domain: a.Domain, Approval: a.Approval, Lasting: true}
	case "approve-for-location", "approved-for-location":
		return Decision{Verdict: Allow, Kind: "approved-for-location", Approval: a.Approval, LocationKey: a.LocationKey, Lasting: true}
	case "reject", "denied-interactively-by-user":
		return rejection(a.Feedback)
	case "user-not-available", "denied-no-approval-rule-and-could-not-request-from-user":
		return NotAvailable()
	case "cancelled":
		return Decision{Verdict: Deny, Kind: "cancelled", Text: TextNotAvailable}
	case "denied-by-rules":
		return Decision{Verdict: Deny, Kind: a.Kind, Text: textByRules, Rules: a.Rules}
	case "denied-by-content-exclusion-policy", "denied-by-permission-request-hook":
		text := "Permission denied"
		if a.Message != "" {
			text += ": " + a.Message
		}
		return Decision{Verdict: Deny, Kind: a.Kind, Text: text, Path: a.Path, Message: a.Message}
	case "no-result":
		return Decision{Verdict: None}
	}
	return Decision{Verdict: Deny, Kind: "denied-by-rules", Text: textUnknown, Unknown: true}
}

func rejection(feedback string) Decision {
	d := Decision{Verdict: Reject, Kind: "denied-interactively-by-user", Text: TextRejected, Feedback: feedback}
	if feedback != "" {
		d.Verdict, d.Text = Deny, TextRejected+TextFeedback+feedback
	}
	return d
}

// NotAvailable is the decision where nobody can be asked.
func NotAvailable() Decision {
	return Decision{Verdict: Deny, Kind: "denied-no-approval-rule-and-could-not-request-from-user", Text: TextNotAvailable}
}

// request has the fields of a permissionRequest that say what it is about.
type request struct {
	Kind     string `json:"kind"`
	ToolName string `json:"toolName"`
	Server   string `json:"serverName"`
	Agent    string `json:"serverAgent"` // whose own the server is; "" is the session's
	URL      string `json:"url"`
	Commands []struct {
		Identifier string `json:"identifier"`
	} `json:"commands"`
	Lasting *bool `json:"canOfferSessionApproval"`
}

// subjects are the keys that have to be granted for a call to run unasked; none
// where nothing lasting can cover it.
func subjects(raw json.RawMessage) []string {
	var r request
	if json.Unmarshal(raw, &r) != nil {
		return nil
	}
	switch r.Kind {
	case "custom-tool":
		return []string{"tool:" + r.ToolName}
	case "mcp":
		return []string{serverKey(r.Agent, r.Server) + r.ToolName}
	case "shell", "commands":
		keys := make([]string, 0, len(r.Commands))
		for _, c := range r.Commands {
			keys = append(keys, "command:"+c.Identifier)
		}
		return keys
	case "url":
		if u, err := url.Parse(r.URL); err == nil && u.Hostname() != "" {
			return []string{"domain:" + hostname(u.Hostname())}
		}
	case "read", "write", "memory":
		return []string{r.Kind}
	}
	return nil
}

// lasting is subjects, but none where the question says that only the call itself
// can be approved: a command line with redirections, a file outside. Nor are there
// any where a name that came with the call would read as "all of its kind": a
// model may run a program named "*".
func lasting(raw json.RawMessage) []string {
	var r request
	if json.Unmarshal(raw, &r) != nil || r.Lasting != nil && !*r.Lasting {
		return nil
	}
	keys := subjects(raw)
	if slices.ContainsFunc(keys, wild) {
		return nil
	}
	return keys
}

// wild reports whether a key stands for more than one thing.
func wild(key string) bool { return strings.HasSuffix(key, ":*") || strings.HasSuffix(key, "/*") }

// Grants returns the keys that a lasting approval covers: what it names, else
// what was asked about.
func Grants(approval json.RawMessage, domain string, asked json.RawMessage) []string {
	if domain != "" {
		return []string{"domain:" + hostname(domain)}
	}
	if len(approval) == 0 || string(approval) == "null" {
		return lasting(asked)
	}
	var a struct {
		Kind     string   `json:"kind"`
		ToolName *string  `json:"toolName"`
		Server   string   `json:"serverName"`
		Commands []string `json:"commandIdentifiers"`
	}
	if json.Unmarshal(approval, &a) != nil {
		return nil
	}
	var about request
	_ = json.Unmarshal(asked, &about) // what cannot be read belongs to no agent
	if a.Server != about.Server {
		about.Agent = ""
	}
	switch {
	case a.Kind == "custom-tool" && a.ToolName == nil:
		return lasting(asked)
	case a.Kind == "custom-tool":
		return []string{"tool:" + *a.ToolName}
	case a.Kind == "mcp" && a.ToolName == nil:
		return []string{serverKey(about.Agent, a.Server) + "*"}
	case a.Kind == "mcp":
		return []string{serverKey(about.Agent, a.Server) + *a.ToolName}
	case a.Kind == "commands":
		keys := make([]string, 0, len(a.Commands))
		for _, c := range a.Commands {
			keys = append(keys, "command:"+c)
		}
		// Hosts give back the identifiers that they were asked about: they are names,
		// whatever they look like.
		return slices.DeleteFunc(keys, wild)
	case a.Kind == "read" || a.Kind == "write" || a.Kind == "memory":
		return []string{a.Kind}
	}
	return nil
}

// Approval is the lasting approval that covers what was asked about, as clients
// read it; nil where none can.
func Approval(asked json.RawMessage) json.RawMessage {
	var r request
	if json.Unmarshal(asked, &r) != nil || len(lasting(asked)) == 0 {
		return nil
	}
	var a any
	switch r.Kind {
	case "custom-tool":
		a = map[string]any{"kind": r.Kind, "toolName": r.ToolName}
	case "mcp":
		a = map[string]any{"kind": r.Kind, "serverName": r.Server, "toolName": r.ToolName}
	case "shell", "commands":
		ids := make([]string, 0, len(r.Commands))
		for _, c := range r.Commands {
			ids = append(ids, c.Identifier)
		}
		a = map[string]any{"kind": "commands", "commandIdentifiers": ids}
	case "read", "write", "memory":
		a = map[string]any{"kind": r.Kind}
	default:
		return nil
	}
	raw, err := json.Marshal(a)
	if err != nil {
		return nil
	}
	return raw
}
