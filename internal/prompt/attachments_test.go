package prompt

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAttach(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "one.txt"), "one")
	write(t, filepath.Join(dir, "two.txt"), "one\ntwo\n")
	write(t, filepath.Join(dir, "bin"), "a\x00b")
	write(t, filepath.Join(dir, "sub", "readme.txt"), "")
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, tc := range []struct{ name, raw, lead, trail string }{
		{"nothing", `[]`, "", ""},
		{"file", `[{"type":"file","path":"DIR/one.txt"}]`, "", "\n\n\n\n<tagged_files>\n* DIR/one.txt (1 lines)\n</tagged_files>"},
		{"files and a directory", `[{"type":"file","path":"two.txt","displayName":"x"},{"type":"directory","path":"sub"},{"type":"file","path":"DIR/bin"},{"type":"file","path":"no"}]`, "",
			"\n\n\n\n<tagged_files>\n* DIR/two.txt (2 lines)\n* DIR/sub (1 items)\n* DIR/bin (3 bytes, not text)\n* DIR/no (does not exist)\n</tagged_files>"},
		{"a line", `[{"type":"file","path":"DIR/one.txt","lineRange":{"start":1,"end":1}}]`, "", "\n\n\n\n<tagged_files>\n* DIR/one.txt (line 1 of 1 lines)\n</tagged_files>"},
		{"lines", `[{"type":"file","path":"DIR/two.txt","lineRange":{"start":1,"end":2}}]`, "", "\n\n\n\n<tagged_files>\n* DIR/two.txt (lines 1-2 of 2 lines)\n</tagged_files>"},
		{"selection", `[{"type":"selection","filePath":"/w/a.cs","displayName":"a.cs","text":"x = 1;","selection":{"start":{"line":1,"character":2},"end":{"line":1,"character":4}}}]`,
			"<ide_selection>\nThe user has the following text selected in their IDE. This may or may not be related to their request.\nFile: a.cs (line 2)\n```\nx = 1;\n```\n</ide_selection>\n\n", ""},
		{"a selection of fences", `[{"type":"selection","filePath":"/w/a.md","text":"` + "```" + `","selection":{"start":{"line":0},"end":{"line":2}}}]`,
			"<ide_selection>\nThe user has the following text selected in their IDE. This may or may not be related to their request.\nFile: /w/a.md (lines 1-3)\n````\n```\n````\n</ide_selection>\n\n", ""},
		{"reference", `[{"type":"github_reference","number":1234,"referenceType":"issue","state":"open","title":"Add\ncoverage","url":"https://x/1234"}]`, "",
			"\n\n\n\n<github_references>\n#1234 - Add coverage [issue] [open] (https://x/1234)\n</github_references>"},
		{"pictures and documents", `[{"type":"blob","mimeType":"image/png","data":"QUJD"},{"type":"blob","mimeType":"application/pdf","data":"QUJD"}]`, "", ""},
		{"text", `[{"type":"blob","mimeType":"text/csv","displayName":"a.csv","data":"` + b64("1,2\n") + `"},{"type":"blob","mimeType":"x/y","data":"` + b64("\x00") + `"}]`, "",
			"\n\n\n\n<attached_file name=\"a.csv\" type=\"text/csv\">\n1,2\n</attached_file>\n\n<attached_file name=\"attachment\" type=\"x/y\">\n(1 bytes that are not text: they cannot be shown.)\n</attached_file>"},
		{"another", `[{"type":"github_url", "url":"https://x"},{"type":"file","path":"one.txt"}]`, "",
			"\n\n\n\n<tagged_files>\n* DIR/one.txt (1 lines)\n</tagged_files>\n\n<attachment type=\"github_url\">\n{\"type\":\"github_url\",\"url\":\"https://x\"}\n</attachment>"},
	} {
		var raw []json.RawMessage
		if err := json.Unmarshal([]byte(strings.ReplaceAll(tc.raw, "DIR", dir)), &raw); err != nil {
			t.Fatal(err)
		}
		lead, trail, err := Attach(dir, raw)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if diff := cmp.Diff([]string{tc.lead, tc.trail}, []string{lead, strings.ReplaceAll(trail, dir, "DIR")}); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
	for _, raw := range []string{`1`, `{}`, `{"type":"file"}`, `{"type":"directory"}`, `{"type":"blob","data":"!"}`, `{"type":"blob"}`, `{"type":"file","path":7}`,
		`{"type":"blob","mimeType":"text/plain","data":"` + b64(strings.Repeat("x", maxInline+1)) + `"}`} {
		var wrong *ConfigError
		if _, _, err := Attach(dir, []json.RawMessage{json.RawMessage(raw)}); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "attachments[0]") {
			t.Errorf("%.40s: %v", raw, err)
		}
	}
}

func TestLimitsStatus(t *testing.T) {
	for credits, want := range map[float64]string{30: "limits: 30 AI credits. Later", 0.5: "limits: 0.5 AI credits.", 3e6: "limits: 3000000 AI credits."} {
		if got := LimitsStatus(credits); !strings.Contains(got, want) || !strings.HasPrefix(got, "<session_limits_status>\n") || !strings.HasSuffix(got, "unnecessary tool calls.\n</session_limits_status>") {
			t.Error(got)
		}
	}
}

func FuzzAttach(f *testing.F) {
	f.Add([]byte(`{"type":"file","path":"/x","lineRange":{"start":-1}}`))
	f.Add([]byte(`{"type":"selection","text":"x","selection":{"end":{"line":9}}}`))
	f.Add([]byte(`{"type":"blob","mimeType":"text/plain","data":"QUJD"}`))
	f.Add([]byte(`{"type":"\u0000"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if lead, trail, err := Attach("/nowhere", []json.RawMessage{raw}); err != nil && lead+trail != "" {
			t.Error("an error with a text")
		}
	})
}
