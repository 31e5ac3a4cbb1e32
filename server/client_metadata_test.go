package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What clients keep with a session is changed whole or not at all, and is there
// after a resume.
func TestClientMetadata(t *testing.T) {
	c := play(t).connect(t)
	c.create("s")
	get := func(want map[string]string) {
		t.Helper()
		var got map[string]string
		c.ok("session.metadata.getClientMetadata", obj{"sessionId": "s"}, &got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	get(map[string]string{})
	var after map[string]string
	c.ok("session.metadata.updateClientMetadata", obj{"sessionId": "s", "set": obj{"app/a": "1", "app/b": "2"}}, &after)
	if after["app/a"] != "1" || len(after) != 2 {
		t.Errorf("after the change: %v", after)
	}
	for _, bad := range []obj{
		{"set": obj{"": "x"}}, {"set": obj{"github/x": "x"}}, {"remove": []string{"copilot/x"}}, {"set": obj{strings.Repeat("k", 257): "x"}},
		{"clear": true, "set": obj{"big": strings.Repeat("x", 16<<10+1)}},
		{"set": obj{"1": strings.Repeat("x", 16<<10), "2": strings.Repeat("x", 16<<10), "3": strings.Repeat("x", 16<<10), "4": strings.Repeat("x", 16<<10)}},
	} {
		bad["sessionId"] = "s"
		c.fails(-32602, "session.metadata.updateClientMetadata", bad)
	}
	c.ok("session.metadata.updateClientMetadata", obj{"sessionId": "s", "remove": []string{"app/a", "app/b", "nothing"}, "set": obj{"app/b": "3"}})
	get(map[string]string{"app/b": "3"})
	stored := func(keys any, want string) {
		t.Helper()
		var rows []struct {
			SessionID, Status string
			Metadata          map[string]string
		}
		p := obj{"sessionIds": []any{"gone", "s", "../s", "s"}}
		if keys != nil {
			p["keys"] = keys
		}
		c.ok("sessions.getClientMetadata", p, &rows)
		var got []string
		for _, r := range rows {
			got = append(got, fmt.Sprint(r.SessionID, " ", r.Status, " ", r.Metadata))
		}
		if diff := cmp.Diff([]string{"gone notFound map[]", "s ok " + want, "../s notFound map[]", "s ok " + want}, got); diff != "" {
			t.Error(diff)
		}
	}
	stored(nil, "map[app/b:3]")
	stored([]any{"app/a"}, "map[]")
	c.fails(-32602, "sessions.getClientMetadata", obj{"sessionIds": make([]string, 1001)})
	c.ok("session.destroy", obj{"sessionId": "s"})
	stored([]any{"app/b", "x"}, "map[app/b:3]") // nobody has it loaded
	c.ok("session.resume", obj{"sessionId": "s"})
	get(map[string]string{"app/b": "3"})
	c.ok("session.metadata.updateClientMetadata", obj{"sessionId": "s", "clear": true})
	get(map[string]string{})
}
