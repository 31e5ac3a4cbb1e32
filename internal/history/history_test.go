package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/transom-run/transom/event"
)

func record(id string, p event.Payload) *event.Event {
	e, err := event.New(p, id, "", time.Unix(0, 0))
	if err != nil {
		panic(err)
	}
	if e, err = event.Decode(e.Line); err != nil {
		panic(err)
	}
	return e
}

// TestAnyHistory holds an index against a list from which truncations cut.
func TestAnyHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x Index
		var shown []int // places
		ids := map[int]string{}
		public := map[int]bool{}
		n := rapid.IntRange(0, 60).Draw(t, "records")
		for place := 0; place < n; place++ {
			ids[place] = fmt.Sprintf("ID-%d", place)
			switch rapid.IntRange(0, 5).Draw(t, "record") {
			case 0:
				x.Add(int64(place), record(ids[place], event.Queued{Prompt: "q"}))
			case 1:
				if len(shown) == 0 {
					break
				}
				at := rapid.IntRange(0, len(shown)-1).Draw(t, "at")
				to := ids[shown[at]]
				switch rapid.IntRange(0, 2).Draw(t, "how") {
				case 0:
					to = strings.ToLower(to)
				case 1:
					to = "damaged" // the count says it
				}
				x.Add(int64(place), record(ids[place], event.Truncated{UpToEventID: to, Kept: int64(at)}))
				shown = shown[:at]
			case 2:
				x.Add(int64(place), record(ids[place], event.SessionIdle{}))
			default:
				x.Add(int64(place), record(ids[place], event.SessionInfo{Message: "x"}))
				shown, public[place] = append(shown, place), true
			}
			if x.Shown() != len(shown) {
				t.Fatalf("%d events shown, want %d", x.Shown(), len(shown))
			}
			for p := 0; p <= place; p++ {
				if is, want := x.Hidden(int64(p)), public[p] && !slices.Contains(shown, p); public[p] && is != want {
					t.Fatalf("record %d hidden: %v, want %v (cuts %v, shown %v)", p, is, want, x.Cuts(), shown)
				}
			}
			for i, p := range shown {
				if at, before, ok := x.Find(ids[p]); !ok || before != i || at != int64(p) {
					t.Fatalf("event %s found at %d as number %d, %v; want %d, %d", ids[p], at, before, ok, p, i)
				}
			}
			if _, _, ok := x.Find("none"); ok {
				t.Fatal("an event that is none was found")
			}
		}
	})
}

// TestStrangeBoundaries: what a damaged log may hold cuts nothing that it does not
// name.
func TestStrangeBoundaries(t *testing.T) {
	for _, kept := range []int64{-5, 0, 1, 99} {
		var x Index
		x.Add(1, record("a", event.SessionInfo{}))
		x.Add(2, record("b", event.SessionInfo{}))
		x.Add(3, record("t", event.Truncated{UpToEventID: "none", Kept: kept}))
		if want := int(min(max(kept, 0), 2)); x.Shown() != want {
			t.Errorf("kept %d: %d events are shown, want %d", kept, x.Shown(), want)
		}
	}
	bad, err := event.Decode([]byte(`{"type":"transom.truncated","id":"t","data":7}`))
	if err != nil {
		t.Fatal(err)
	}
	var x Index
	x.Add(1, record("a", event.SessionInfo{}))
	x.Add(2, bad)
	if x.Shown() != 1 || len(x.Cuts()) != 0 {
		t.Errorf("a boundary that cannot be read cut something: %v", x.Cuts())
	}
}
