package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

// payloads has one payload of each type, empty.
var payloads = []Payload{
	SessionStart{}, SessionResume{}, SessionShutdown{}, SessionError{}, SessionWarning{}, SessionInfo{},
	ContextCleared{}, CompactionStart{}, CompactionComplete{}, UserMessage{}, SystemMessage{}, TurnStart{}, TurnEnd{}, AssistantMessage{}, ToolStart{},
	ToolComplete{}, PermissionRequested{}, PermissionCompleted{}, ExternalToolRequested{}, ExternalToolCompleted{},
	Abort{}, ModelChange{}, ModeChanged{}, ContextChanged{}, TitleChanged{}, ToolsUpdated{}, PendingModified{},
	UsageInfo{}, AssistantUsage{}, ModelCallFailure{}, TurnRetry{}, MessageStart{}, MessageDelta{}, ReasoningDelta{},
	StreamingDelta{}, ToolCallDelta{}, AssistantIdle{}, SessionIdle{},
	Queued{}, Intent{}, Epoch{}, Named{}, Usage{}, LoopEnd{}, Unqueued{}, RemoteSteerableChanged{},
	PlanChanged{}, TodosChanged{}, ExitPlanRequested{}, ExitPlanCompleted{}, WorkspaceFileChanged{}, PermissionsChanged{}, CapabilitiesChanged{}, CommandsChanged{}, CommandExecute{},
	SubagentStarted{}, SubagentCompleted{}, SubagentFailed{}, SubagentSelected{}, SubagentDeselected{}, Notification{}, TasksChanged{}, TaskComplete{},
	AgentStarted{}, AgentEnded{}, AgentMoved{}, AgentRemoved{},
	CommandQueued{}, CommandCompleted{}, ElicitationRequested{}, ElicitationCompleted{}, EphemeralQuery{}, ApprovalsReset{}, ClientMetadata{}, QueueOrder{}, Saved{}, SkillInvoked{}, SkillsLoaded{}, ToolSearchActivated{},
	CanvasOpened{}, CanvasClosed{}, CanvasUnavailable{}, CanvasRecorded{}, CanvasRemoved{}, CanvasRegistry{}, FactoryUpdated{}, FactoryStarted{}, FactorySettled{},
	SnapshotRewind{}, Truncated{}, Tracking{}, FileCaptured{}, RewindBegun{}, RewindDropped{},
	ScheduleCreated{}, ScheduleCancelled{}, ScheduleRearmed{}, ScheduleSkipped{},
	MCPServersLoaded{}, MCPServerStatusChanged{}, MCPToolsListChanged{}, ExtensionsLoaded{}, ToolProgress{}, MCPPromptsListChanged{}, MCPResourcesListChanged{},
	MCPOAuthRequired{}, MCPOAuthCompleted{}, MCPAppToolCallComplete{}, SamplingRequested{}, SamplingCompleted{},
	AutoModeSwitchRequested{}, AutoModeSwitchCompleted{}, SessionLimitsExhaustedRequested{}, SessionLimitsExhaustedCompleted{}, SessionLimitsChanged{}, UsageCheckpoint{},
}

// full is the payload with something in each of its fields, text at the end of
// every string.
func full(p Payload, text string) Payload {
	v := reflect.New(reflect.TypeOf(p)).Elem()
	fill(v, text)
	return v.Interface().(Payload)
}

func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x" + text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Struct:
		for i := range v.NumField() {
			if tag := v.Type().Field(i).Tag.Get("json"); tag != "-" {
				fill(v.Field(i), text)
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			raw, _ := json.Marshal(map[string]string{"k": text})
			v.Set(reflect.ValueOf(json.RawMessage(raw)))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		elem := reflect.New(v.Type().Elem()).Elem()
		fill(elem, text)
		v.SetMapIndex(reflect.ValueOf("key"), elem)
	}
}

// decodeAs decodes an event's data into a new value of a payload's type.
func decodeAs(t interface{ Fatalf(string, ...any) }, e *Event, p Payload) Payload {
	v := reflect.New(reflect.TypeOf(p))
	if err := e.Into(v.Interface()); err != nil {
		t.Fatalf("%v", err)
	}
	return v.Elem().Interface().(Payload)
}

// awkward texts that a record must keep, each in one physical line.
var awkward = []string{
	"", "plain", "line\nline", "\r\n", "\u2028", "\u2029", "\u0085", "a\u2028b\u2029c\u0085d", "\x00\x01\x1f\x7f",
	`\u0000 \n "`, "<b>&amp;</b>", "é 漢字 🙂 \U0010ffff", "\ufeffbom", "tab\t\v\f\b",
}

func TestRoundTrip(t *testing.T) {
	for _, p := range payloads {
		for _, text := range awkward {
			want := full(p, text)
			e, err := New(want, "id"+text, "parent"+text, at)
			if err != nil {
				t.Fatal(err)
			}
			oneLine(t, e.Line)
			got, err := Decode(e.Line)
			if err != nil {
				t.Fatalf("%s: %v\n%s", p.EventType(), err, e.Line)
			}
			if got.Type != p.EventType() || got.ID != "id"+text || got.ParentID != "parent"+text || !got.Timestamp.Equal(at) ||
				got.Ephemeral != e.Ephemeral || !bytes.Equal(got.Data, e.Data) {
				t.Errorf("%s: envelope %+v, want %+v", p.EventType(), got, e)
			}
			switch p.(type) {
			case MessageDelta, StreamingDelta: // only ever written
				continue
			}
			if diff := cmp.Diff(want, decodeAs(t, got, p)); diff != "" {
				t.Errorf("%s with %q (-want +got):\n%s", p.EventType(), text, diff)
			}
		}
	}
}

// oneLine checks that bytes are one line for every reader there is.
func oneLine(t interface{ Errorf(string, ...any) }, line []byte) {
	if !utf8.Valid(line) || !json.Valid(line) {
		t.Errorf("not valid UTF-8 or JSON: %q", line)
	}
	if strings.ContainsAny(string(line), "\n\r\v\f\u2028\u2029\x00") {
		t.Errorf("not one line: %q", line)
	}
}

// TestDeltas: the two payloads with encoders of their own write what encoding/json
// would.
func TestDeltas(t *testing.T) {
	for _, text := range awkward {
		var got struct{ MessageID, DeltaContent string }
		e, err := New(MessageDelta{MessageID: "m", DeltaContent: text}, "i", "", at)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Into(&got); err != nil || got.MessageID != "m" || got.DeltaContent != text {
			t.Errorf("%q became %+v, %v", text, got, err)
		}
	}
	e, err := New(StreamingDelta{TotalResponseSizeBytes: 12}, "i", "", at)
	if err != nil || string(e.Data) != `{"totalResponseSizeBytes":12}` {
		t.Errorf("%s, %v", e.Data, err)
	}
}

// TestLoneSurrogates: half a pair, which JSON can spell and UTF-8 cannot, and
// bytes that are not UTF-8, become the replacement character, in the log and in
// what is decoded from it alike.
func TestLoneSurrogates(t *testing.T) {
	var text string
	if err := json.Unmarshal([]byte(`"a\ud800b\udc00c"`), &text); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{text: "a\ufffdb\ufffdc", "a\xff\xfeb": "a\ufffd\ufffdb"} {
		for _, p := range []Payload{ContextCleared{InitialMessage: in}, MessageDelta{DeltaContent: in}} {
			e, err := New(p, "i", "", at)
			if err != nil {
				t.Fatal(err)
			}
			oneLine(t, e.Line)
			var got struct{ InitialMessage, DeltaContent string }
			if err := e.Into(&got); err != nil || got.InitialMessage+got.DeltaContent != want {
				t.Errorf("%T of %q became %+v, %v", p, in, got, err)
			}
		}
	}
}

// TestRawLineSeparators: embedded JSON with raw separators is one line as well.
func TestRawLineSeparators(t *testing.T) {
	raw := json.RawMessage("{\"a\":\"\u2028\u2029\",\n \"b\":1}")
	e, err := New(ToolStart{ToolCallID: "c", ToolName: "t", Arguments: raw}, "i", "", at)
	if err != nil {
		t.Fatal(err)
	}
	oneLine(t, e.Line)
	p := decodeAs(t, e, ToolStart{}).(ToolStart)
	var got map[string]any
	if err := json.Unmarshal(p.Arguments, &got); err != nil || got["a"] != "\u2028\u2029" {
		t.Errorf("%q, %v", p.Arguments, err)
	}
}

// TestRoundTripAnyText: encode, decode, the same, for any text.
func TestRoundTripAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		p := full(rapid.SampledFrom(payloads).Draw(t, "payload"), text)
		e, err := New(p, text+"i", text, at)
		if err != nil {
			t.Fatal(err)
		}
		oneLine(t, e.Line)
		got, err := Decode(e.Line)
		if err != nil || got.ID != e.ID || got.ParentID != text {
			t.Fatalf("%+v, %v", got, err)
		}
		switch p.(type) {
		case MessageDelta, StreamingDelta:
			return
		}
		if diff := cmp.Diff(p, decodeAs(t, got, p)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestDecode(t *testing.T) {
	for line, want := range map[string]string{
		``:                        "not a JSON object",
		`[]`:                      "not a JSON object",
		`null`:                    "no type",
		`{`:                       "not a JSON object",
		`{"type":1,"id":"a"}`:     "not a JSON object",
		`{"id":"a"}`:              "no type",
		`{"type":"a"}`:            `type "a" has no id`,
		`{"type":"","id":"x"}`:    "no type",
		"{\"type\":\"a\xff\"}":    "UTF-8",
		`{"type":"a","id":"b"} x`: "not a JSON object",
	} {
		if e, err := Decode([]byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want an error with %q", line, e, err, want)
		}
	}
	// What other writers leave out or put in is no reason to lose a record.
	e, err := Decode([]byte(`{"type":"some.future","id":"b","timestamp":"never","parentId":null,"new":{"x":1}}` + "\r"))
	if err != nil || e.Type != "some.future" || !e.Timestamp.IsZero() || e.ParentID != "" || !e.Persisted() || !e.Public() {
		t.Errorf("%+v, %v", e, err)
	}
	if !strings.Contains(string(e.Line), `"new"`) {
		t.Error("an unknown member is lost")
	}
	if _, err := As[UserMessage](e); err != nil {
		t.Errorf("a record without data: %v", err)
	}
	e, err = Decode([]byte(`{"type":"user.message","id":"b","data":{"content":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := As[UserMessage](e); err == nil || !strings.Contains(err.Error(), "user.message event b") {
		t.Errorf("a payload that cannot be read: %v", err)
	}
}

func TestKinds(t *testing.T) {
	for _, tc := range []struct {
		p                  Payload
		persisted, private bool
	}{
		{UserMessage{}, true, false},
		{SessionIdle{}, false, false},
		{Queued{}, true, true},
		{EphemeralNote{SessionInfo{InfoType: "i", Message: "m"}}, false, false},
	} {
		e, err := New(tc.p, "i", "", at)
		if err != nil {
			t.Fatal(err)
		}
		if e.Persisted() != tc.persisted || e.Private() != tc.private || e.Public() == tc.private {
			t.Errorf("%s: persisted %v, private %v", e.Type, e.Persisted(), e.Private())
		}
	}
	e, err := New(EphemeralNote{SessionInfo{InfoType: "i", Message: "m"}}, "i", "", at)
	if want := `{"type":"session.info","data":{"infoType":"i","message":"m"},"id":"i","timestamp":"2026-01-02T03:04:05.678Z","parentId":null,"ephemeral":true}`; err != nil || string(e.Line) != want {
		t.Errorf("%s, %v", e.Line, err)
	}
}

// TestSecretsStayOut: headers of a message that waits may hold a key.
func TestSecretsStayOut(t *testing.T) {
	e, err := New(Queued{MessageID: "m", Prompt: "p", RequestHeaders: map[string]string{"Authorization": "SECRET"}}, "i", "", at)
	if err != nil || bytes.Contains(e.Line, []byte("SECRET")) {
		t.Errorf("%s, %v", e.Line, err)
	}
}

func TestUnencodable(t *testing.T) {
	if e, err := New(ToolStart{Arguments: json.RawMessage("{")}, "i", "", at); err == nil || !strings.Contains(err.Error(), TypeToolStart) {
		t.Errorf("%+v, %v", e, err)
	}
}

// FuzzDecode: no bytes crash it, and what it takes it keeps.
func FuzzDecode(f *testing.F) {
	for _, p := range payloads {
		for _, text := range awkward {
			if e, err := New(full(p, text), "id", "parent", at); err == nil {
				f.Add(e.Line)
			}
		}
	}
	for _, s := range []string{"", "null", "{}", "\x00\x00", `{"type":"a","id":"b"`, `{"type":"a","id":"b","data":[1,{}]}`, strings.Repeat("[", 10000), "{\"type\":\"\xed\xa0\x80\"}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := Decode(line)
		if err != nil {
			if err.Error() == "" || e != nil {
				t.Error("an error without words")
			}
			return
		}
		again, err := Decode(e.Line)
		if err != nil || again.ID != e.ID || again.Type != e.Type {
			t.Errorf("decoded %q once, and then %v", line, err)
		}
		for _, p := range payloads {
			if p.EventType() == e.Type {
				v := reflect.New(reflect.TypeOf(p))
				_ = e.Into(v.Interface())
			}
		}
	})
}

func BenchmarkNew(b *testing.B) {
	for name, p := range map[string]Payload{
		"delta":   MessageDelta{MessageID: "0f0f0f0f-0000-4000-8000-000000000000", DeltaContent: "some words"},
		"message": UserMessage{Content: "some words", TransformedContent: "some words", MessageID: "m", InteractionID: "i", TurnID: "0"},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				if _, err := New(p, "0f0f0f0f-0000-4000-8000-000000000000", fmt.Sprint(i), at); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
