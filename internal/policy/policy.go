// Package policy decides about permissions: whether a call needs to be asked
// about, and what an answer means. It is pure: no state, no clock, no I/O.
//
// The rule is deny by default: a call that needs approval runs only where
// somebody, now or earlier, approved it.
package policy

import (
	"encoding/json"
	"slices"
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
		return Decision{Verdict: Allow, Kind: "approved-for-session", Approval: a.Approval, Lasting: true}
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

// Rules is what has been approved already.
type Rules struct {
	// ApproveAll: everything runs without asking. Only by explicit choice.
	ApproveAll bool
	// Tools are names of tools approved for the session.
	Tools []string
}

// Asks reports whether a call of a tool needs to be asked about.
func (r Rules) Asks(toolName string, skipPermission bool) bool {
	return !r.ApproveAll && !skipPermission && !slices.Contains(r.Tools, toolName)
}

// ApprovedTool returns the tool that a lasting approval covers: the one it names,
// else the one that was asked about. "" where the approval is about something
// other than a tool.
func ApprovedTool(approval json.RawMessage, asked string) string {
	if len(approval) == 0 || string(approval) == "null" {
		return asked
	}
	var a struct {
		Kind     string `json:"kind"`
		ToolName string `json:"toolName"`
	}
	if json.Unmarshal(approval, &a) != nil || a.Kind != "custom-tool" {
		return ""
	}
	if a.ToolName == "" {
		return asked
	}
	return a.ToolName
}
