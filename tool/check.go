package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/transom-run/transom/tool/internal/schema"
)

// ProblemKind says what was wrong with a call.
type ProblemKind string

// What can be wrong with a call before anything runs.
const (
	NotJSON     ProblemKind = "not-json"
	NotObject   ProblemKind = "not-object"
	Invalid     ProblemKind = "invalid" // the schema does not allow the arguments
	UnknownName ProblemKind = "unknown-tool"
)

// Problem is why a call never ran. It is the call's result.
type Problem struct {
	Kind ProblemKind
	// ModelText is what the model reads: what was wrong and what is allowed.
	ModelText string
	// Message is what people read in the event.
	Message string
	// Code is the code of the event's error: always [Failure].
	Code ResultType
}

// Outcome is the problem as the end of the call.
func (p *Problem) Outcome() Outcome {
	return Outcome{Type: Failure, Code: string(p.Code), ModelText: p.ModelText, EventMessage: p.Message}
}

// noArguments stands for arguments that did not parse to an object.
const noArguments = "{}"

// Check reads a model's arguments and holds them against the tool's schema.
//
// args is always a JSON object, fit for the event and for the window: the
// arguments in compact form, members in the model's order and numbers as the
// model wrote them, or {} where there is no object. It must only be run where
// problem is nil.
//
//   - Empty, blank and null arguments are {}, where the schema allows that.
//   - Of a repeated member the last value counts, here and for every handler.
//   - Half a surrogate pair and bytes that are not UTF-8 become U+FFFD.
//   - Numbers may be of any size; they are compared exactly.
//   - More than 56 levels of nesting are a problem: some SDK's JSON reader stops
//     at 64, and the events around the arguments need the rest.
func (c *Compiled) Check(raw string) (args json.RawMessage, problem *Problem) {
	text := strings.TrimSpace(raw)
	if text == "" || text == "null" {
		text = noArguments
	}
	v, err := schema.Parse(text)
	if err != nil {
		return json.RawMessage(noArguments), c.unreadable(text, err)
	}
	if v.Kind != schema.Object {
		msg := notAnObject(v.Kind.String())
		return json.RawMessage(noArguments), &Problem{Kind: NotObject, ModelText: "Invalid input: " + msg, Message: msg, Code: Failure}
	}
	args = v.AppendJSON(make([]byte, 0, len(text)))
	if report := c.schema.Validate(&v); report != nil {
		return args, c.invalid(report)
	}
	return args, nil
}

func (c *Compiled) unreadable(text string, err error) *Problem {
	var se *schema.SyntaxError
	if errors.As(err, &se) && se.TooDeep {
		msg := fmt.Sprintf("The arguments are nested more than %d levels deep", schema.MaxDepth)
		return &Problem{Kind: Invalid, ModelText: "Invalid input: " + msg + ". Send something flatter.", Message: msg, Code: Failure}
	}
	at := 0
	if se != nil {
		at = se.Offset
	}
	return &Problem{
		Kind: NotJSON,
		ModelText: fmt.Sprintf("%s They were discarded and the tool did not run. What was wrong: %v. Received: %s\nCall the tool again with one JSON object.",
			notJSON(c.Name), err, excerpt(text, at)),
		Message: err.Error(),
		Code:    Failure,
	}
}

// excerpt shows a text of the model's around a place.
func excerpt(text string, at int) string {
	const before, after = 240, 80
	from, to := max(at-before, 0), min(at+after, len(text))
	cut := strings.ToValidUTF8(text[from:to], "") // also where a character was cut
	if from > 0 {
		cut = "…" + cut
	}
	if to < len(text) {
		cut += "…"
	}
	return cut
}

func (c *Compiled) invalid(report *schema.Report) *Problem {
	if c.schema.Never() {
		msg := "the schema of this tool (false) allows no call"
		return &Problem{Kind: Invalid, ModelText: fmt.Sprintf("Invalid input for the tool '%s': %s. Do not call it again.", c.Name, msg), Message: "Invalid input: " + msg, Code: Failure}
	}
	var model, event strings.Builder
	fmt.Fprintf(&model, "Invalid input for the tool '%s':\n", c.Name)
	event.WriteString("Invalid input: ")
	for i, p := range report.Problems {
		line := p.String()
		model.WriteString("- " + line + "\n")
		if i > 0 {
			event.WriteString("; ")
		}
		event.WriteString(line)
	}
	if report.More {
		model.WriteString("- and more\n")
		event.WriteString("; and more")
	}
	model.WriteString("The tool did not run. Correct the arguments and call it again.")
	return &Problem{Kind: Invalid, ModelText: model.String(), Message: event.String(), Code: Failure}
}

// UnknownTool is the problem of a call to a tool there is not. The names of
// those there are go to the model, so that it can call one of them.
func UnknownTool(name string, available []string) *Problem {
	model, event := unknownTool(short(name, 200), available)
	return &Problem{Kind: UnknownName, ModelText: model, Message: event, Code: Failure}
}
