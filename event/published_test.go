package event

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/github/copilot-sdk/go/rpc"
)

// TestAllTypesAreTested: each type constant has a payload in the list.
func TestAllTypesAreTested(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "types.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, p := range payloads {
		have[p.EventType()] = true
	}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		name, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if !have[name] {
			t.Errorf("no payload of type %s in the list", name)
		}
		return true
	})
}

// ours are members that the published types do not list, each with the reason.
var ours = map[string]string{
	"sampling.requested request":    "the method that answers it, session.mcp.executeSampling, is documented to take it from the event",
	"session.task_complete summary": "the published Go type has no members; the TypeScript type has these",
	"session.task_complete success": "the published Go type has no members; the TypeScript type has these",
	"session.idle backgroundTasks":  "an idle event that comes while other work goes on names it",
	"user.message images":           "the SDKs know no place for what an attached file held; the window is folded from it",
}

// examples are values that the published types restrict to a list, or to a shape.
var examples = map[string]any{
	"session.start startTime":                "2026-01-02T03:04:05.678Z",
	"session.resume resumeTime":              "2026-01-02T03:04:05.678Z",
	"session.shutdown shutdownType":          "routine",
	"user.message delivery":                  "queued",
	"user.message agentMode":                 "plan",
	"permission.requested permissionRequest": map[string]any{"kind": "custom-tool", "toolCallId": "c", "toolName": "t", "toolDescription": "d", "args": map[string]any{"a": "b"}},
	"permission.requested promptRequest":     map[string]any{"kind": "custom-tool", "toolCallId": "c", "toolName": "t", "toolDescription": "d", "args": map[string]any{"a": "b"}},
	"permission.completed result":            map[string]any{"kind": "denied-interactively-by-user", "feedback": "f"},
	"system.notification kind":               map[string]any{"type": "agent_completed", "agentId": "a", "agentType": "explore", "displayName": "n", "description": "d", "prompt": "p", "status": "completed"},
	"elicitation.requested requestedSchema":  map[string]any{"type": "object", "properties": map[string]any{}},
	"user.message attachments":               []any{map[string]any{"type": "file", "path": "p", "displayName": "d"}},
}

// TestPublishedTypes holds every public payload against the types that the SDKs
// publish: they take what we write, know each member, and miss none.
func TestPublishedTypes(t *testing.T) {
	for _, p := range payloads {
		if strings.HasPrefix(p.EventType(), PrivatePrefix) {
			continue
		}
		t.Run(p.EventType(), func(t *testing.T) {
			e, err := New(full(p, ""), "id", "parent", at)
			if err != nil {
				t.Fatal(err)
			}
			var line map[string]any
			if err := json.Unmarshal(e.Line, &line); err != nil {
				t.Fatal(err)
			}
			data := line["data"].(map[string]any)
			for k := range data {
				if v, ok := examples[p.EventType()+" "+k]; ok {
					data[k] = v
				}
			}
			raw, err := json.Marshal(line)
			if err != nil {
				t.Fatal(err)
			}
			var theirs rpc.SessionEvent
			if err := json.Unmarshal(raw, &theirs); err != nil {
				t.Fatalf("the published type does not take %s: %v", raw, err)
			}
			if _, unknown := theirs.Data.(*rpc.RawSessionEventData); unknown {
				t.Fatal("the SDKs do not know this type")
			}
			again, err := json.Marshal(theirs.Data)
			if err != nil {
				t.Fatal(err)
			}
			var kept map[string]any
			if err := json.Unmarshal(again, &kept); err != nil {
				t.Fatal(err)
			}
			compare(t, p.EventType(), data, kept)

			e, err = New(p, "id", "", at)
			if err != nil {
				t.Fatal(err)
			}
			var least map[string]any
			if err := json.Unmarshal(e.Data, &least); err != nil {
				t.Fatal(err)
			}
			for _, name := range required(reflect.TypeOf(theirs.Data).Elem()) {
				if _, ok := least[name]; !ok {
					t.Errorf("%s is required, and an empty payload lacks it: %s", name, e.Data)
				}
			}
		})
	}
}

// compare checks that each member of what we write is kept, as what it was.
func compare(t *testing.T, path string, wrote, kept any) {
	t.Helper()
	switch w := wrote.(type) {
	case map[string]any:
		k, ok := kept.(map[string]any)
		if !ok {
			t.Errorf("%s: an object became %T", path, kept)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(w)) {
			at := path + " " + name
			if _, ok := k[name]; !ok {
				if ours[at] == "" {
					t.Errorf("%s is no member of the published type", at)
				}
				continue
			}
			compare(t, at, w[name], k[name])
		}
	case []any:
		k, ok := kept.([]any)
		if !ok || len(k) != len(w) {
			t.Errorf("%s: %v became %v", path, wrote, kept)
			return
		}
		for i := range w {
			compare(t, fmt.Sprint(path, "[", i, "]"), w[i], k[i])
		}
	default:
		if wrote != kept {
			t.Errorf("%s: %v became %v", path, wrote, kept)
		}
	}
}

// required lists the members that a published type always has.
func required(typ reflect.Type) []string {
	var out []string
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" && !strings.Contains(rest, "omit") {
			out = append(out, name)
		}
	}
	return out
}

// TestPublishedDecisions: the kinds of decision that we write are those that the
// SDKs know.
func TestPublishedDecisions(t *testing.T) {
	approval := json.RawMessage(`{"kind":"custom-tool","toolName":"t"}`)
	for _, r := range []PermissionResult{
		{Kind: "approved"},
		{Kind: "approved-for-session", Approval: approval},
		{Kind: "approved-for-location", Approval: approval},
		{Kind: "denied-interactively-by-user", Feedback: "f"},
		{Kind: "denied-no-approval-rule-and-could-not-request-from-user"},
		{Kind: "denied-by-rules"},
		{Kind: "denied-by-content-exclusion-policy"},
		{Kind: "denied-by-permission-request-hook"},
		{Kind: "cancelled", Reason: "r"},
	} {
		t.Run(r.Kind, func(t *testing.T) {
			e, err := New(PermissionCompleted{RequestID: "r", ToolCallID: "c", Result: r}, "id", "", at)
			if err != nil {
				t.Fatal(err)
			}
			var theirs rpc.SessionEvent
			if err := json.Unmarshal(e.Line, &theirs); err != nil {
				t.Fatal(err)
			}
			d := theirs.Data.(*rpc.PermissionCompletedData)
			v := reflect.ValueOf(d.Result)
			if v.Kind() == reflect.Pointer {
				v = v.Elem()
			}
			if strings.Contains(v.Type().Name(), "Raw") {
				t.Fatalf("the SDKs do not know the kind: %T", d.Result)
			}
			var wrote map[string]any
			if err := json.Unmarshal(e.Data, &struct{ Result *map[string]any }{&wrote}); err != nil {
				t.Fatal(err)
			}
			for _, name := range required(v.Type()) {
				if _, ok := wrote[name]; !ok {
					t.Errorf("%s is required for %s", name, r.Kind)
				}
			}
		})
	}
}
