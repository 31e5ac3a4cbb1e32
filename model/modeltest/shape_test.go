package modeltest

import (
	"strings"
	"testing"
)

// TestCheckShape: bodies as the documentation has them, and what is wrong with each
// when something in it is replaced.
func TestCheckShape(t *testing.T) {
	const (
		chat = `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"t"},{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}}]},` +
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":""}],` +
			`"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":true}}}}],"reasoning_effort":"low","stream":true,"stream_options":{"include_usage":true}}`
		resp = `{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_file","filename":"f","file_data":"data:application/pdf;base64,QUJD"}]},` +
			`{"type":"reasoning","id":"r","summary":[],"encrypted_content":"e"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":""}],"store":false}`
		mess = `{"model":"m","max_tokens":9,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]},` +
			`{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"},{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"}]}]}`
	)
	for _, tt := range []struct{ path, body, old, new, want string }{
		{"/chat/completions", chat, "", "", ""},
		{"/chat/completions", chat, `"model":"m"`, `"model":"m","store":false`, "body.store is no field"},
		{"/chat/completions", chat, `"model":"m",`, ``, "body lacks model"},
		{"/chat/completions", chat, `"role":"system"`, `"role":"developer"`, "messages[0].role is developer"},
		{"/chat/completions", chat, `"content":"s"`, `"content":["s"]`, "messages[0].content is []interface"},
		{"/chat/completions", chat, `base64,QUJD`, `base64,Q`, "must be base64"},
		{"/chat/completions", chat, `data:image/png;base64,`, `https://x/`, "must be a data URL"},
		{"/chat/completions", chat, `"arguments":"{}"`, `"arguments":""`, "must be an object as a text"},
		{"/chat/completions", chat, `"name":"f","arg`, `"name":"f f","arg`, "must match"},
		{"/chat/completions", chat, `,"properties":{"a":true}`, ``, "have properties"},
		{"/chat/completions", chat, `{"a":true}`, `{"a":[]}`, "must be a schema"},
		{"/chat/completions", chat, `"type":"object",`, `"type":["object"],`, "be of the type object"},
		{"/chat/completions", chat, `"type":"object",`, `"type":"object","$schema":"x",`, "has $schema"},
		{"/chat/completions", chat, `"low"`, `""`, "must be one of"},
		{"/responses", resp, "", "", ""},
		{"/responses", resp, `"store":false`, `"store":true`, "body.store is true"},
		{"/responses", resp, `"summary":[]`, `"summary":[{"type":"text","text":"x"}]`, "summary[0].type is text"},
		{"/responses", resp, `"type":"function_call",`, `"type":"custom",`, "input[2].type is custom"},
		{"/messages", mess, "", "", ""},
		{"/messages", mess, `"max_tokens":9`, `"max_tokens":0`, "must be a positive integer"},
		{"/messages", mess, `"input":{}`, `"input":"{}"`, "input is string"},
		{"/messages", mess, `,"signature":"s"`, ``, "lacks signature"},
		{"/messages", mess, `"thinking":"",`, `"thinking":"","cache_control":{"type":"ephemeral"},`, "cache_control is no field"},
		{"/messages", mess, `[{"type":"tool_result","tool_use_id":"c"}]`, `[]`, "an array of at least 1"},
		{"/elsewhere", mess, "", "", "the path of no wire"},
	} {
		body := strings.Replace(tt.body, tt.old, tt.new, 1)
		if body == tt.body && tt.old != "" {
			t.Errorf("%s: %s is not there", tt.path, tt.old)
		}
		if err := CheckShape(tt.path, []byte(body)); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s with %q for %q: %v, want %q", tt.path, tt.new, tt.old, err, tt.want)
		}
	}
}
