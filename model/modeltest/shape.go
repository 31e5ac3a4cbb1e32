package modeltest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// CheckShape reports the first thing in the body of a request that its wire's
// documentation does not have: a field of another name, a value of another kind, a
// schema of a tool that is no object with properties. The wire is told by the path, as
// it is for [Server]. Fields that are documented and that no request of Transom has are
// refused too.
func CheckShape(path string, body []byte) error {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return chatShape("body", v)
	case strings.HasSuffix(path, "/responses"):
		return responsesShape("body", v)
	case strings.HasSuffix(path, "/messages"):
		return messagesShape("body", v)
	}
	return fmt.Errorf("%s is the path of no wire", path)
}

// A shape refuses a value that is not of it; at is where the value stands.
type shape func(at string, v any) error

type fields map[string]shape

// object has all fields of need, and besides only those of may.
func object(need, may fields) shape {
	return func(at string, v any) error {
		o, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is %T, and must be an object", at, v)
		}
		for name := range need {
			if _, ok := o[name]; !ok {
				return fmt.Errorf("%s lacks %s", at, name)
			}
		}
		for name, v := range o {
			s := need[name]
			if s == nil {
				s = may[name]
			}
			if s == nil {
				return fmt.Errorf("%s.%s is no field of the wire", at, name)
			}
			if err := s(at+"."+name, v); err != nil {
				return err
			}
		}
		return nil
	}
}

// kinds is an object of one of several shapes, whose field key says which.
func kinds(key string, list map[string]shape) shape {
	return func(at string, v any) error {
		o, _ := v.(map[string]any)
		kind, _ := o[key].(string)
		if s := list[kind]; s != nil {
			return s(at, v)
		}
		return fmt.Errorf("%s.%s is %v, which the wire does not know", at, key, o[key])
	}
}

// list is an array of at least least.
func list(least int, of shape) shape {
	return func(at string, v any) error {
		a, ok := v.([]any)
		if !ok || len(a) < least {
			return fmt.Errorf("%s is %.60v, and must be an array of at least %d", at, v, least)
		}
		for i, v := range a {
			if err := of(fmt.Sprintf("%s[%d]", at, i), v); err != nil {
				return err
			}
		}
		return nil
	}
}

// textOr is a text or what else may stand in its place.
func textOr(other shape) shape {
	return func(at string, v any) error {
		if _, ok := v.(string); ok {
			return nil
		}
		return other(at, v)
	}
}

func text(at string, v any) error {
	return textOr(func(at string, v any) error { return fmt.Errorf("%s is %T, and must be a text", at, v) })(at, v)
}

// oneOf is one of some values.
func oneOf(values ...any) shape {
	return func(at string, v any) error {
		if !slices.Contains(values, v) {
			return fmt.Errorf("%s is %.60v, and must be one of %v", at, v, values)
		}
		return nil
	}
}

// matching is a text of a form.
func matching(form *regexp.Regexp) shape {
	return func(at string, v any) error {
		if s, ok := v.(string); !ok || !form.MatchString(s) {
			return fmt.Errorf("%s is %.60v, and must match %s", at, v, form)
		}
		return nil
	}
}

func positive(at string, v any) error {
	if n, ok := v.(float64); !ok || n < 1 || n != float64(int(n)) {
		return fmt.Errorf("%s is %v, and must be a positive integer", at, v)
	}
	return nil
}

func base64Text(at string, v any) error {
	s, _ := v.(string)
	if b, err := base64.StdEncoding.DecodeString(s); err != nil || len(b) == 0 {
		return fmt.Errorf("%s is %.60v, and must be base64", at, v)
	}
	return nil
}

// dataURL holds something in base64.
func dataURL(at string, v any) error {
	s, _ := v.(string)
	head, data, ok := strings.Cut(s, ";base64,")
	if !ok || !strings.HasPrefix(head, "data:") || !strings.Contains(head, "/") {
		return fmt.Errorf("%s is %.60v, and must be a data URL", at, v)
	}
	return base64Text(at, data)
}

func anyObject(at string, v any) error {
	if _, ok := v.(map[string]any); !ok {
		return fmt.Errorf("%s is %T, and must be an object", at, v)
	}
	return nil
}

// objectText is a JSON object, as a text.
func objectText(at string, v any) error {
	if s, ok := v.(string); !ok || !isObject(s) {
		return fmt.Errorf("%s is %.60v, and must be an object as a text", at, v)
	}
	return nil
}

// parameters is the schema of a tool: the type object, with properties, which are
// schemas, and without the name of a dialect.
func parameters(at string, v any) error {
	o, _ := v.(map[string]any)
	properties, ok := o["properties"].(map[string]any)
	if o["type"] != "object" || !ok {
		return fmt.Errorf("%s is %.200v, and must be of the type object and have properties", at, v)
	}
	for name, v := range properties {
		switch v.(type) {
		case map[string]any, bool:
		default:
			return fmt.Errorf("%s.properties.%s is %T, and must be a schema", at, name, v)
		}
	}
	for _, name := range []string{"$schema", "$ref"} {
		if o[name] != nil {
			return fmt.Errorf("%s has %s", at, name)
		}
	}
	return nil
}

var (
	toolName  = matching(regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`))
	plainCall = matching(messageID)
	boolean   = oneOf(true, false)
	effort    = oneOf("none", "minimal", "low", "medium", "high", "xhigh", "max")
)

// Chat completions.
var (
	chatText = object(fields{"type": oneOf("text"), "text": text}, nil)
	chatPart = kinds("type", map[string]shape{
		"text":      chatText,
		"image_url": object(fields{"type": text, "image_url": object(fields{"url": dataURL}, fields{"detail": text})}, nil),
		"file":      object(fields{"type": text, "file": object(fields{"filename": text, "file_data": dataURL}, nil)}, nil),
	})
	chatCall = object(fields{"id": text, "type": oneOf("function"), "function": object(fields{"name": toolName, "arguments": objectText}, nil)}, nil)

	chatShape = object(fields{
		"model": text,
		"messages": list(1, kinds("role", map[string]shape{
			"system":    object(fields{"role": text, "content": text}, nil),
			"user":      object(fields{"role": text, "content": textOr(list(1, chatPart))}, nil),
			"assistant": object(fields{"role": text, "content": textOr(oneOf(nil))}, fields{"tool_calls": list(1, chatCall)}),
			"tool":      object(fields{"role": text, "content": text, "tool_call_id": text}, nil),
		})),
	}, fields{
		"tools": list(1, object(fields{"type": oneOf("function"), "function": object(
			fields{"name": toolName, "parameters": parameters}, fields{"description": text})}, nil)),
		"reasoning_effort": effort, "max_tokens": positive, "max_completion_tokens": positive,
		"stream": boolean, "stream_options": object(fields{"include_usage": boolean}, nil),
	})
)

// Responses.
var (
	responsesPart = kinds("type", map[string]shape{
		"input_text":  object(fields{"type": text, "text": text}, nil),
		"input_image": object(fields{"type": text, "image_url": dataURL, "detail": oneOf("auto", "low", "high")}, nil),
		"input_file":  object(fields{"type": text, "filename": text, "file_data": dataURL}, nil),
	})
	responsesItem = kinds("type", map[string]shape{
		"message": kinds("role", map[string]shape{
			"user":      object(fields{"type": text, "role": text, "content": textOr(list(1, responsesPart))}, nil),
			"assistant": object(fields{"type": text, "role": text, "content": text}, nil),
		}),
		"function_call":        object(fields{"type": text, "call_id": text, "name": toolName, "arguments": objectText}, nil),
		"function_call_output": object(fields{"type": text, "call_id": text, "output": text}, nil),
		"reasoning": object(fields{"type": text, "id": text, "summary": list(0, object(fields{"type": oneOf("summary_text"), "text": text}, nil))}, fields{
			"content": list(1, object(fields{"type": oneOf("reasoning_text"), "text": text}, nil)), "encrypted_content": text}),
	})

	responsesShape = object(fields{"model": text, "input": list(1, responsesItem), "store": oneOf(false)}, fields{
		"instructions": text,
		"tools": list(1, object(fields{"type": oneOf("function"), "name": toolName, "parameters": parameters, "strict": oneOf(false)},
			fields{"description": text})),
		"reasoning": object(nil, fields{"effort": effort, "summary": oneOf("auto", "concise", "detailed")}),
		"include":   list(1, oneOf("reasoning.encrypted_content")),
		"stream":    boolean, "max_output_tokens": positive,
	})
)

// Messages.
var (
	cached = fields{"cache_control": object(fields{"type": oneOf("ephemeral")}, nil)}

	messagesText   = object(fields{"type": oneOf("text"), "text": text}, cached)
	messagesSource = kinds("type", map[string]shape{
		"base64": object(fields{"type": text, "media_type": text, "data": base64Text}, nil),
		"text":   object(fields{"type": text, "media_type": oneOf("text/plain"), "data": text}, nil),
	})
	messagesUser = kinds("type", map[string]shape{
		"text":        messagesText,
		"image":       object(fields{"type": text, "source": messagesSource}, cached),
		"document":    object(fields{"type": text, "source": messagesSource}, fields{"title": text, "citations": object(fields{"enabled": boolean}, nil)}),
		"tool_result": object(fields{"type": text, "tool_use_id": plainCall}, fields{"content": text, "cache_control": cached["cache_control"]}),
	})
	messagesAssistant = kinds("type", map[string]shape{
		"text":              messagesText,
		"tool_use":          object(fields{"type": text, "id": plainCall, "name": toolName, "input": anyObject}, cached),
		"thinking":          object(fields{"type": text, "thinking": text, "signature": text}, nil),
		"redacted_thinking": object(fields{"type": text, "data": text}, nil),
	})

	messagesShape = object(fields{
		"model": text, "max_tokens": positive,
		"messages": list(1, kinds("role", map[string]shape{
			"user":      object(fields{"role": text, "content": list(1, messagesUser)}, nil),
			"assistant": object(fields{"role": text, "content": list(1, messagesAssistant)}, nil),
		})),
	}, fields{
		"system": list(1, messagesText), "stream": boolean,
		"tools": list(1, object(fields{"name": toolName, "input_schema": parameters}, fields{"description": text, "cache_control": cached["cache_control"]})),
		"thinking": kinds("type", map[string]shape{
			"enabled":  object(fields{"type": text, "budget_tokens": positive}, nil),
			"adaptive": object(fields{"type": text}, fields{"display": oneOf("summarized")}),
		}),
		"output_config": object(fields{"effort": effort}, nil),
	})
)
