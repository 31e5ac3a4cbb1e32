package prompt

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
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
		read, err := Attach(context.Background(), dir, raw)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if diff := cmp.Diff([]string{tc.lead, tc.trail}, []string{read.Lead, strings.ReplaceAll(read.Trail, dir, "DIR")}); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
	for _, raw := range []string{`1`, `{}`, `{"type":"file"}`, `{"type":"directory"}`, `{"type":"blob","data":"!"}`, `{"type":"blob"}`, `{"type":"file","path":7}`,
		`{"type":"blob","mimeType":"text/plain","data":"` + b64(strings.Repeat("x", maxInline+1)) + `"}`} {
		var wrong *ConfigError
		if _, err := Attach(context.Background(), dir, []json.RawMessage{json.RawMessage(raw)}); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "attachments[0]") {
			t.Errorf("%.40s: %v", raw, err)
		}
	}
}

func TestAttachImage(t *testing.T) {
	dir := t.TempDir()
	var small, large bytes.Buffer
	if err := png.Encode(&small, image.NewNRGBA(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	if err := jpeg.Encode(&large, image.NewGray(image.Rect(0, 0, 4000, 100)), nil); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "shot.txt"), small.String())
	write(t, filepath.Join(dir, "wide.jpg"), large.String())
	write(t, filepath.Join(dir, "broken.png"), small.String()[:20])
	write(t, filepath.Join(dir, "a.svg"), "<svg/>\n")
	var raw []json.RawMessage
	for _, name := range []string{"shot.txt", "wide.jpg", "broken.png", "a.svg"} {
		raw = append(raw, json.RawMessage(`{"type":"file","path":"`+name+`"}`))
	}
	raw = append(raw, json.RawMessage(`{"type":"blob","mimeType":"image/svg+xml","displayName":"b.svg","data":"`+base64.StdEncoding.EncodeToString([]byte("<svg/>"))+`"}`))
	read, err := Attach(context.Background(), dir, raw)
	if err != nil || len(read.Images) != 2 {
		t.Fatalf("%d images, %v", len(read.Images), err)
	}
	if im := read.Images[0]; im.Name != filepath.Join(dir, "shot.txt") || im.MIMEType != "image/png" || im.Data != base64.StdEncoding.EncodeToString(small.Bytes()) {
		t.Errorf("%+v", im)
	}
	data, err := base64.StdEncoding.DecodeString(read.Images[1].Data)
	if err != nil {
		t.Fatal(err)
	}
	if cfg, err := jpeg.DecodeConfig(bytes.NewReader(data)); err != nil || cfg.Width != 2000 || cfg.Height != 50 {
		t.Errorf("the wide one is %dx%d (%v)", cfg.Width, cfg.Height, err)
	}
	want := "\n\n\n\n<tagged_files>\n* DIR/broken.png (20 bytes, not text: an image that is not shown, for it is damaged (unexpected EOF))\n* DIR/a.svg (1 lines)\n</tagged_files>\n\n" +
		"<attached_file name=\"b.svg\" type=\"image/svg+xml\">\n<svg/>\n</attached_file>"
	if diff := cmp.Diff(want, strings.ReplaceAll(read.Trail, dir, "DIR")); diff != "" {
		t.Error(diff)
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
		if read, err := Attach(context.Background(), "/nowhere", []json.RawMessage{raw}); err != nil && read.Lead+read.Trail != "" {
			t.Error("an error with a text")
		}
	})
}
