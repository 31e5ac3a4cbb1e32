package tool

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/transom-run/transom/tool/internal/schema"
)

// MaxDetail is how many bytes of an error's detail an event carries.
const MaxDetail = 8 << 10

// Outcome is the end of a call, ready for the model and for the event
// tool.execution_complete.
type Outcome struct {
	// Success tells whether the call succeeded: only then does a terminal tool
	// end its turn.
	Success bool
	Type    ResultType
	// ModelText is what the model reads.
	ModelText string
	// Content and DetailedContent are the event's result where the call
	// succeeded.
	Content         string
	DetailedContent string
	// EventMessage and Code are the event's error where it did not.
	EventMessage string
	Code         string
	// Binary holds images and files for the model; each is valid base64.
	Binary []Binary
	// Telemetry is a compact JSON object; nil where there is none.
	Telemetry json.RawMessage
	// References are the names of tools that a tool search found.
	References []string
	// Structured is the result as JSON; nil where there is none.
	Structured json.RawMessage
	// Whole: ModelText is not cut.
	Whole bool
	// Skill is what the call loaded; nil where it did not, or did not succeed.
	Skill *Skill
}

// Settle decides what a call came to. It is the only way from what a handler or
// a host gave to an outcome.
//
//   - redact takes secrets out of every text (nil: leaves them as they are): what a
//     tool came upon is neither for the model nor for the log.
//   - err is what a handler threw. Its detail goes to the event, cut to [MaxDetail];
//     the model reads a bare failure.
//   - A result's type is [Success] where empty, and a [Failure] where unknown.
//   - A failure's or time-out's Error is the event's message, with Text in its
//     place where there is none. A denied or rejected call's Text is the message.
//   - A call that did not succeed and has no text says so: the model never reads
//     an empty failure.
//   - Text that is not valid UTF-8 is repaired. Attachments that are not base64
//     would make providers refuse the session's every later request: they are
//     left out, and the text says so.
func Settle(call Call, res Result, err error, redact func(string) string) Outcome {
	if redact == nil {
		redact = func(s string) string { return s }
	}
	if err != nil {
		return Outcome{
			Type:         Failure,
			Code:         string(Failure),
			ModelText:    failedToExecute(call.Name, short(arguments(call), 2000)),
			EventMessage: detail(redact(err.Error())),
		}
	}
	o := Outcome{Type: res.Type, Telemetry: object(res.Telemetry), References: res.References, Structured: res.Structured, Whole: res.Whole}
	if o.Telemetry != nil {
		o.Telemetry = object(json.RawMessage(redact(string(o.Telemetry))))
	}
	if o.Structured != nil {
		if o.Structured = json.RawMessage(redact(string(o.Structured))); !json.Valid(o.Structured) {
			o.Structured = nil
		}
	}
	var leftOut string
	o.Binary, leftOut = readable(res.Binary)
	text := redact(strings.ToValidUTF8(res.Text, "\ufffd"))
	switch o.Type {
	case "", Success:
		o.Type, o.Success = Success, true
	case Failure, Timeout, Denied, Rejected:
	default:
		o.Type = Failure
	}
	if o.Success {
		o.ModelText = join(text, leftOut)
		o.Content = o.ModelText
		o.DetailedContent = o.Content
		if res.Detail != "" {
			o.DetailedContent = redact(strings.ToValidUTF8(res.Detail, "\ufffd"))
		}
		o.Skill = res.Skill
		return o
	}
	o.Code = string(o.Type)
	message := text
	if (o.Type == Failure || o.Type == Timeout) && strings.TrimSpace(res.Error) != "" || strings.TrimSpace(text) == "" {
		message = res.Error
	}
	if strings.TrimSpace(text) == "" {
		text = wordless(call.Name, o.Type)
	}
	if strings.TrimSpace(message) == "" {
		message = text
	}
	o.ModelText = join(text, leftOut)
	o.EventMessage = detail(redact(message))
	return o
}

// WithText is the outcome with another text for the model, as where a large
// result is cut to a preview. The event shows what the model reads.
func (o Outcome) WithText(text string) Outcome {
	if o.DetailedContent == o.Content {
		o.DetailedContent = text
	}
	if o.Success {
		o.Content = text
	}
	o.ModelText = text
	return o
}

func arguments(call Call) string {
	if len(call.Arguments) == 0 {
		return noArguments
	}
	return string(call.Arguments)
}

// detail makes a text fit for an event's error message.
func detail(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if strings.TrimSpace(s) == "" {
		return executionFailed
	}
	if len(s) <= MaxDetail {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes more)", cut(s, MaxDetail), len(s)-MaxDetail)
}

// cut takes at most n bytes of s, and never a part of a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

// wordless is what the model reads of a call that did not succeed and gave no
// text.
func wordless(name string, t ResultType) string {
	switch t {
	case Timeout:
		return fmt.Sprintf("The tool '%s' did not finish in time.", name)
	case Denied:
		return fmt.Sprintf("The call of the tool '%s' was denied; no reason was given.", name)
	case Rejected:
		return fmt.Sprintf("The call of the tool '%s' was rejected; no reason was given.", name)
	}
	return fmt.Sprintf("The tool '%s' failed and gave no text that says why.", name)
}

func join(text, note string) string {
	switch {
	case note == "":
		return text
	case text == "":
		return note
	}
	return text + "\n\n" + note
}

// object is raw as a compact JSON object; nil where it is none.
func object(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	v, err := schema.Parse(string(raw))
	if err != nil || v.Kind != schema.Object {
		return nil
	}
	return v.AppendJSON(nil)
}

// readable keeps the attachments that a model can be sent, and says what was
// left out. The kind follows the MIME type where it is missing or unknown.
func readable(in []Binary) (kept []Binary, leftOut string) {
	for i, b := range in {
		switch {
		case b.Data == "":
			leftOut = join(leftOut, fmt.Sprintf("(attachment %d of this result is empty and was left out)", i+1))
			continue
		case !isBase64(b.Data):
			leftOut = join(leftOut, fmt.Sprintf("(attachment %d of this result is not valid base64 and was left out)", i+1))
			continue
		}
		if b.MIMEType == "" {
			b.MIMEType = "application/octet-stream"
		}
		if b.Type != "image" && b.Type != "resource" {
			b.Type = "resource"
			if strings.HasPrefix(b.MIMEType, "image/") {
				b.Type = "image"
			}
		}
		kept = append(kept, b)
	}
	return kept, leftOut
}

// isBase64 reports whether s is standard base64 with its padding.
func isBase64(s string) bool {
	if len(s)%4 != 0 {
		return false
	}
	body := strings.TrimSuffix(strings.TrimSuffix(s, "="), "=")
	for i := range len(body) {
		c := body[i]
		if !('a' <= c|32 && c|32 <= 'z' || '0' <= c && c <= '9' || c == '+' || c == '/') {
			return false
		}
	}
	return true
}
