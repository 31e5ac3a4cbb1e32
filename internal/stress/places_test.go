//go:build unix

package stress

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlaces: no id and no path of a client leads out of a session's directory, or
// into another session's, be it by "..", as an absolute path or through a link.
func TestPlaces(t *testing.T) {
	home, work := t.TempDir(), t.TempDir()
	outside := filepath.Join(home, "outside")
	if err := os.MkdirAll(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "secret.txt"), []byte("outside-marker"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBrain(t, soakModel)
	s := start(t, home, false, nil, "--no-auto-login")
	l := s.lodger()
	for _, id := range []string{"mine", "other"} {
		l.create(id, b, work)
		l.turn(id, "hello")
		l.ok("session.workspaces.ensure", obj{"sessionId": id}, nil)
		l.ok("session.workspaces.createFile", obj{"sessionId": id, "path": "own.txt", "content": id + "-marker"}, nil)
	}
	files := filepath.Join(home, "transom", "session-state", "mine", "files")
	if _, err := os.Stat(filepath.Join(files, "own.txt")); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link": outside, "sibling": "../../other/files", "log": "../events.jsonl", "file": filepath.Join(outside, "secret.txt")} {
		if err := os.Symlink(target, filepath.Join(files, name)); err != nil {
			t.Fatal(err)
		}
	}
	before := listing(t, home)
	paths := []string{
		"../events.jsonl", "../../other/files/own.txt", "../../../../outside/secret.txt", filepath.Join(outside, "secret.txt"), "link/secret.txt", "link/new.txt",
		"sibling/own.txt", "log", "file", "a/../../../other/files/own.txt", "./../plan.md", "..", ".", "", "/", "a\x00b", "..\\..\\x", "file/..", "link/../own.txt",
		filepath.Join(home, "transom", "session-state", "other", "files", "own.txt"), "~/x", "%2e%2e/x",
	}
	for _, path := range paths {
		for _, call := range []struct {
			method string
			params obj
		}{
			{"readFile", obj{"path": path}}, {"statFile", obj{"path": path}}, {"createFile", obj{"path": path, "content": "overwritten"}},
			{"createDirectory", obj{"path": path, "recursive": true}}, {"removePath", obj{"path": path, "recursive": true}},
			{"renamePath", obj{"source": "own.txt", "destination": path}}, {"renamePath", obj{"source": path, "destination": "taken.txt"}},
		} {
			call.params["sessionId"] = "mine"
			m, err := l.call("session.workspaces."+call.method, call.params)
			if err != nil {
				t.Fatal(err)
			}
			for _, marker := range []string{"outside-marker", "other-marker", "session.start"} {
				if strings.Contains(m.Raw(), marker) {
					t.Errorf("%s %q shows %s: %.300s", call.method, path, marker, m.Raw())
				}
			}
		}
	}
	for _, id := range []string{"../other", "mine/../other", "..", ".", "", "/", home, "other/files", "a/b", "a\\b", "mine\x00", "mine/", "MINE/../../x", "%2e%2e", strings.Repeat("a", 5000), "\u202emine", " other"} {
		for _, method := range []string{"session.create", "session.resume", "session.delete", "sessions.close", "session.getMetadata", "sessions.getEventFilePath", "sessions.save", "session.getMessages"} {
			if _, err := l.call(method, obj{"sessionId": id, "model": "m", "provider": b.provider(), "workingDirectory": work}); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = l.call("sessions.bulkDelete", obj{"sessionIds": []string{id}})
	}
	after := listing(t, home)
	own := filepath.Join("transom", "session-state", "mine", "files") + "/"
	for path, was := range before {
		if now := after[path]; now != was && !strings.HasPrefix(path, own) && !strings.HasSuffix(path, "events.jsonl") {
			t.Errorf("%s was %q and is %q", path, was, now)
		}
	}
	for path := range after {
		inside := strings.HasPrefix(path, "transom/")
		if _, was := before[path]; !was && !strings.HasPrefix(path, own) && (!inside || strings.Contains(path, "other/")) {
			t.Errorf("%s has come", path)
		}
	}
	s.stop()
}

// listing is all that lies below a directory: what a file holds, where a link leads.
func listing(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			out[rel], err = os.Readlink(path)
		case d.Type().IsRegular():
			var b []byte
			b, err = os.ReadFile(path)
			out[rel] = fmt.Sprintf("%d bytes %.200s", len(b), b)
		default:
			out[rel] = d.Type().String()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
