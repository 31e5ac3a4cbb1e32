package transom_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/transom-run/transom"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/model"
)

// images are those that the first message of the newest request shows.
func (s *script) images() []model.Image { return s.newest().Messages[1].Images }

func kinds(list []model.Image) (out []string) {
	for _, im := range list {
		out = append(out, filepath.Base(im.Name)+" "+im.MIMEType)
	}
	return out
}

// TestImageFiles: images in attached files reach a model that sees, within its
// limits; another is told of them; and they outlive their files and the process.
func TestImageFiles(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	dir, img := t.TempDir(), image.NewGray(image.Rect(0, 0, 20, 10))
	var bodies []string
	var given []json.RawMessage
	for name, encode := range map[string]func(*bytes.Buffer) error{
		"a.png": func(b *bytes.Buffer) error { return png.Encode(b, img) },
		"b.jpg": func(b *bytes.Buffer) error { return jpeg.Encode(b, img, nil) },
		"c.gif": func(b *bytes.Buffer) error { return gif.Encode(b, img, nil) },
	} {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, name), b.String())
	}
	for _, name := range []string{"a.png", "b.jpg", "c.gif"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, base64.StdEncoding.EncodeToString(raw))
		given = append(given, json.RawMessage(`{"type":"file","path":"`+name+`","displayName":"x"}`))
	}
	store, sc := memlog.New(), &script{replies: texts(20)}
	rt, err := transom.Open(transom.Config{Store: store, Provider: sc, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	s, err := rt.CreateSession(ctx, transom.SessionConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "see", Attachments: given}); err != nil {
		t.Fatal(err)
	}
	all := []string{"a.png image/png", "b.jpg image/jpeg", "c.gif image/gif"}
	shows := func(want []string) {
		t.Helper()
		if diff := cmp.Diff(want, kinds(sc.images())); diff != "" {
			t.Error(diff)
		}
	}
	shows(all)
	for i, im := range sc.images() {
		if im.Data != bodies[i] {
			t.Errorf("%s was changed", im.Name)
		}
	}
	if got := sc.seen()[0]; !strings.HasPrefix(got, "user see [") {
		t.Errorf("the files are in the text too: %s", got)
	}
	step := func(c transom.Configure) {
		t.Helper()
		if err := s.Configure(ctx, c); err != nil {
			t.Fatal(err)
		}
		sendAndWait(t, ctx, s)
	}
	limited := func(l model.ImageLimits) transom.Configure {
		return transom.Configure{Abilities: &transom.Abilities{Images: l}}
	}
	step(limited(model.ImageLimits{Count: 1}))
	shows(all[2:])
	if got := sc.seen()[0]; strings.Count(got, "is not shown: the model in use takes at most 1 images.)") != 2 || !strings.Contains(got, "a.png is not") {
		t.Error(got)
	}
	step(limited(model.ImageLimits{Types: []string{"image/png"}}))
	shows([]string{"a.png image/png", "b.jpg image/png", "c.gif image/png"})
	step(limited(model.ImageLimits{Bytes: 1}))
	shows(nil)
	if got := sc.seen()[0]; strings.Count(got, "is not shown: it cannot be brought down to 1 bytes.)") != 3 {
		t.Error(got)
	}
	no, yes := false, true
	step(transom.Configure{Vision: &no})
	shows(nil)
	if got := sc.seen()[0]; strings.Count(got, "is not shown: the model in use takes no images.)") != 3 {
		t.Error(got)
	}
	if err := s.Configure(ctx, transom.Configure{Vision: &yes, Abilities: &transom.Abilities{}}); err != nil {
		t.Fatal(err)
	}
	id := s.ID()
	if err := rt.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.png", "b.jpg", "c.gif"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if rt, err = transom.Open(transom.Config{Store: store, Provider: sc, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	defer rt.Close(ctx)
	if s, err = rt.ResumeSession(ctx, id, transom.ResumeConfig{}); err != nil {
		t.Fatal(err)
	}
	sendAndWait(t, ctx, s)
	shows(all)
}

// A broken image is said to be missing, and does not make every later request fail.
func TestBrokenImage(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	sc := &script{replies: texts(5)}
	rt, err := transom.Open(transom.Config{Store: memlog.New(), Provider: sc})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(ctx)
	s, err := rt.CreateSession(ctx, transom.SessionConfig{})
	if err != nil {
		t.Fatal(err)
	}
	data := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n\x00\x00"))
	blob := json.RawMessage(`{"type":"blob","mimeType":"image/png","displayName":"cut.png","data":"` + data + `"}`)
	if _, err := s.SendAndWait(ctx, transom.Message{Prompt: "see", Attachments: []json.RawMessage{blob}}); err != nil {
		t.Fatal(err)
	}
	if got := sc.seen()[0]; len(sc.images()) != 0 || !strings.Contains(got, "(cut.png is not shown: it is damaged") {
		t.Error(got)
	}
}
