package server_test

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/transom-run/transom/model/scripted"
)

// TestAttachmentsKeepTheirPlace: a message whose attachment takes its time goes
// before the one that was sent after it.
func TestAttachmentsKeepTheirPlace(t *testing.T) {
	var big bytes.Buffer
	if err := png.Encode(&big, image.NewGray(image.Rect(0, 0, 3000, 3000))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "big.png")
	if err := os.WriteFile(path, big.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	w := play(t, scripted.Say("1"), scripted.Say("2"), scripted.Say("3"))
	c := w.connect(t)
	c.ok("connect", obj{})
	c.create(id1)
	var sent []int
	for i, text := range []string{"first", "second", "third"} {
		params := obj{"sessionId": id1, "prompt": text}
		if i < 2 {
			params["attachments"] = []obj{{"type": "file", "path": path}}
		}
		sent = append(sent, c.send("session.send", params))
	}
	for _, id := range sent {
		if f := c.reply(id); f.Error != nil {
			t.Fatal(f.Error.Message)
		}
	}
	at := 0
	for _, want := range []string{"first", "second", "third"} {
		var m struct{ Content string }
		at = c.eventFrom(at, "user.message", &m) + 1
		if m.Content != want {
			t.Errorf("%q came where %q was due", m.Content, want)
		}
	}
	c.idle(at)
	if got := len(w.model.Requests()); got != 3 {
		t.Errorf("the model was asked %d times", got)
	}
}
