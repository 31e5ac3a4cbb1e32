package tool

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/transom-run/transom/tool/internal/schema"
)

// ParseAnswer reads a host's answer to a call: the members result and error of
// session.tools.handlePendingToolCall, as they came; nil where absent. What it
// returns is for [Settle]; err is what the host's handler threw.
//
// A result is a string, or the object of the SDKs:
//
//	{"textResultForLlm": "…", "resultType": "success|failure|timeout|denied|rejected",
//	 "error": "…", "sessionLog": "…", "toolTelemetry": {…}, "toolReferences": ["…"],
//	 "binaryResultsForLlm": [{"data", "mimeType", "type", "description"}], "contents": [{"type", …}]}
//
// A missing or unknown resultType is success, or failure where there is an
// error, as the SDKs document it. An empty text is the host's own. A result
// without any text where text is due (no textResultForLlm, no text among the
// contents, no attachment), and an answer with neither result nor error, are
// failures that say so. An error beside a result wins.
func ParseAnswer(result, thrown json.RawMessage) (res Result, err error) {
	if e := value(thrown); e != nil && e.Kind != schema.Null {
		return Result{}, errors.New(thrownText(e))
	}
	v := value(result)
	switch {
	case v == nil && len(strings.TrimSpace(string(result))) > 0:
		return unusable("a result that is not readable JSON"), nil
	case v == nil || v.Kind == schema.Null:
		return unusable("neither a result nor an error"), nil
	case v.Kind == schema.String:
		return Result{Text: v.Text, Type: Success}, nil
	case v.Kind != schema.Object:
		return unusable("a result that is " + article(v.Kind) + ", not a text"), nil
	}
	return parseObject(v), nil
}

// value parses raw; nil where there is nothing, or no JSON.
func value(raw json.RawMessage) *schema.Value {
	v, err := schema.Parse(string(raw))
	if err != nil {
		return nil
	}
	return &v
}

func article(k schema.Kind) string {
	if k == schema.Array {
		return "an " + k.String()
	}
	return "a " + k.String()
}

// thrownText is the detail of an error: a string from the SDKs, and perhaps an
// object with a message from others.
func thrownText(e *schema.Value) string {
	if e.Kind == schema.Object {
		if m := e.Get("message"); m != nil && m.Kind == schema.String {
			return m.Text
		}
	}
	if e.Kind == schema.String {
		return e.Text
	}
	return string(e.AppendJSON(nil))
}

// unusable is the result where the host's answer holds none.
func unusable(what string) Result {
	return Result{
		Type: Failure,
		Text: "The tool answered with " + what + ".",
		Error: "the host answered with " + what +
			"; give a string, or an object with textResultForLlm and resultType",
	}
}

func parseObject(v *schema.Value) Result {
	res := Result{
		Error:      text(v, "error"),
		Detail:     text(v, "sessionLog"),
		Binary:     binaries(v.Get("binaryResultsForLlm")),
		References: names(v.Get("toolReferences")),
	}
	switch res.Type = ResultType(text(v, "resultType")); res.Type {
	case Success, Failure, Timeout, Denied, Rejected:
	default:
		res.Type = Success
		if res.Error != "" {
			res.Type = Failure
		}
	}
	if t := v.Get("toolTelemetry"); t != nil && t.Kind == schema.Object {
		res.Telemetry = t.AppendJSON(nil)
	}
	t := v.Get("textResultForLlm")
	fromContents, more, blocks := contents(v.Get("contents"))
	switch {
	case t != nil && t.Kind == schema.String:
		res.Text = t.Text
	case blocks:
		res.Text = fromContents
	}
	if len(res.Binary) == 0 {
		res.Binary = more
	}
	due := t == nil || t.Kind != schema.String
	if due && !blocks && len(res.Binary) == 0 && len(res.References) == 0 && res.Type == Success {
		u := unusable("a result without text")
		if res.Error != "" {
			u.Error = res.Error
		}
		u.Telemetry = res.Telemetry
		return u
	}
	return res
}

// text is a member that is a string; "" where it is none.
func text(v *schema.Value, name string) string {
	if m := v.Get(name); m != nil && m.Kind == schema.String {
		return m.Text
	}
	return ""
}

func names(v *schema.Value) []string {
	if v == nil {
		return nil
	}
	var out []string
	for i := range v.Items {
		if v.Items[i].Kind == schema.String {
			out = append(out, v.Items[i].Text)
		}
	}
	return out
}

func binaries(v *schema.Value) []Binary {
	if v == nil {
		return nil
	}
	var out []Binary
	for i := range v.Items {
		e := &v.Items[i]
		out = append(out, Binary{
			Data: text(e, "data"), MIMEType: text(e, "mimeType"),
			Type: text(e, "type"), Description: text(e, "description"),
		})
	}
	return out
}

// contents reads content blocks: their texts, one after the other, and their
// binary data. found tells whether there was any block that it knows.
func contents(v *schema.Value) (txt string, more []Binary, found bool) {
	if v == nil {
		return "", nil, false
	}
	var texts []string
	for i := range v.Items {
		b := &v.Items[i]
		switch text(b, "type") {
		case "text", "terminal":
			texts = append(texts, text(b, "text"))
		case "shell_exit":
			texts = append(texts, text(b, "outputPreview"))
		case "image":
			more = append(more, Binary{Data: text(b, "data"), MIMEType: text(b, "mimeType"), Type: "image"})
		case "audio":
			more = append(more, Binary{Data: text(b, "data"), MIMEType: text(b, "mimeType"), Type: "resource"})
		case "resource_link":
			texts = append(texts, strings.TrimSpace(text(b, "name")+" "+text(b, "uri")))
		case "resource":
			if r := b.Get("resource"); r != nil && r.Get("blob") != nil {
				more = append(more, Binary{Data: text(r, "blob"), MIMEType: text(r, "mimeType"), Type: "resource", Description: text(r, "uri")})
			} else if r != nil {
				texts = append(texts, text(r, "text"))
			}
		default:
			continue
		}
		found = true
	}
	return strings.Join(texts, "\n"), more, found
}
