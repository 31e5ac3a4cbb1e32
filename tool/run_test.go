package tool

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func compiled(t testing.TB, tool Tool) *Compiled {
	t.Helper()
	tool.Name = "alpha"
	c, err := Compile(tool)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRun(t *testing.T) {
	tests := []struct {
		name    string
		handler Handler
		typ     ResultType
		model   string
		event   string
	}{
		{"text", func(_ context.Context, c Call) (Result, error) {
			return Result{Text: c.Name + string(c.Arguments)}, nil
		}, Success, "alpha{}", ""},
		{"error", func(context.Context, Call) (Result, error) { return Result{Text: "x"}, errors.New("boom") }, Failure, "Failed to execute `alpha`", "boom"},
		{"panic", func(context.Context, Call) (Result, error) { panic("ouch") }, Failure, "Failed to execute `alpha`", "panic: ouch"},
		{"nil panic", func(context.Context, Call) (Result, error) { var p *Result; return *p, nil }, Failure, "Failed to execute", "panic: runtime error: invalid memory address"},
		{"goexit", func(context.Context, Call) (Result, error) { runtime.Goexit(); return Result{}, nil }, Failure, "Failed to execute", "without returning"},
		{"its own cancellation", func(context.Context, Call) (Result, error) { return Result{}, context.Canceled }, Failure, "Failed to execute", "context canceled"},
		{"none", nil, Failure, "Failed to execute", "has no handler"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := Run(t.Context(), compiled(t, Tool{Handler: tt.handler}), Call{}, nil)
			if o.Type != tt.typ || !strings.Contains(o.ModelText, tt.model) || !strings.Contains(o.EventMessage, tt.event) {
				t.Errorf("outcome %+v", o)
			}
			if strings.Contains(o.ModelText, "ouch") || strings.Contains(o.ModelText, "boom") {
				t.Errorf("the model reads the detail: %s", o.ModelText)
			}
		})
	}
}

func TestRunTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		deaf := compiled(t, Tool{Timeout: 2 * time.Second, Handler: func(context.Context, Call) (Result, error) {
			<-release // ignores its context
			return Result{Text: "late"}, nil
		}})
		start := time.Now()
		o := Run(t.Context(), deaf, Call{}, nil)
		if o.Type != Timeout || o.Code != "timeout" || o.ModelText != "The tool 'alpha' did not finish within 2s." || time.Since(start) != 2*time.Second {
			t.Errorf("after %v: %+v", time.Since(start), o)
		}
		close(release)
		synctest.Wait()

		polite := compiled(t, Tool{Timeout: time.Second, Handler: func(ctx context.Context, _ Call) (Result, error) {
			<-ctx.Done()
			return Result{}, ctx.Err()
		}})
		if o := Run(t.Context(), polite, Call{}, nil); o.Type != Timeout {
			t.Errorf("a handler that obeys: %+v", o)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if o := Run(ctx, polite, Call{}, nil); o.Type != Timeout || o.ModelText != "The tool 'alpha' did not finish in time." {
			t.Errorf("the caller's deadline: %+v", o)
		}
		unlimited := compiled(t, Tool{Handler: func(context.Context, Call) (Result, error) {
			<-time.After(1000 * time.Hour)
			return Result{Text: "slow"}, nil
		}})
		if o := Run(t.Context(), unlimited, Call{}, nil); !o.Success {
			t.Errorf("without a limit: %+v", o)
		}
	})
}

func TestRunInterrupted(t *testing.T) {
	const want = "The execution of this tool, or a previous tool was interrupted."
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		deaf := compiled(t, Tool{Handler: func(context.Context, Call) (Result, error) { <-release; return Result{}, nil }})
		time.AfterFunc(time.Second, cancel)
		if o := Run(ctx, deaf, Call{}, nil); o.Type != Failure || o.ModelText != want {
			t.Errorf("%+v", o)
		}
		close(release)
		ran := false
		c := compiled(t, Tool{Handler: func(context.Context, Call) (Result, error) { ran = true; return Result{}, nil }})
		if o := Run(ctx, c, Call{}, nil); o.ModelText != want || ran {
			t.Errorf("on a cancelled context: ran = %t, %+v", ran, o)
		}
	})
}

func TestFunc(t *testing.T) {
	type in struct {
		City string   `json:"city" jsonschema:"the city"`
		Days uint8    `json:"days,omitempty"`
		Tags []string `json:"tags,omitempty"`
	}
	tl, err := Func("weather", "d", func(ctx context.Context, a in) (any, error) {
		c, _ := CallFrom(ctx)
		switch a.City {
		case "text":
			return "plain <text>", nil
		case "result":
			return Result{Text: "no", Type: Denied}, nil
		case "pointer":
			return &Result{Text: "yes"}, nil
		case "error":
			return nil, errors.New("boom")
		case "call":
			return c.SessionID + "/" + c.ID + "/" + c.Name, nil
		case "bad":
			return func() {}, nil
		}
		return map[string]any{"city": "<" + a.City + ">", "days": a.Days}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	const params = `{"type":"object","properties":{"city":{"type":"string","description":"the city"},"days":{"type":"integer","minimum":0,"maximum":255},"tags":{"type":["null","array"],"items":{"type":"string"}}},"required":["city"],"additionalProperties":false}`
	c, err := Compile(tl)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if json.Unmarshal(c.Definition(), &got); json.Unmarshal([]byte(params), &want) != nil || !jsonEqual(got, want) {
		t.Errorf("definition %s", c.Definition())
	}
	for raw, want := range map[string]struct {
		typ  ResultType
		text string
	}{
		`{"city":"Riga","days":3}`: {Success, `{"city":"<Riga>","days":3}`},
		`{"city":"text"}`:          {Success, "plain <text>"},
		`{"city":"result"}`:        {Denied, "no"},
		`{"city":"pointer"}`:       {Success, "yes"},
		`{"city":"error"}`:         {Failure, "Failed to execute"},
		`{"city":"bad"}`:           {Failure, "Failed to execute"},
		`{"city":"call"}`:          {Success, "s/1/weather"},
		`{"city":"a","days":1e0}`:  {Failure, "Invalid input: json: cannot unmarshal number"},
	} {
		args, p := c.Check(raw)
		if p != nil {
			t.Errorf("%s: %+v", raw, p)
			continue
		}
		if o := Run(t.Context(), c, Call{SessionID: "s", ID: "1", Arguments: args}, nil); o.Type != want.typ || !strings.Contains(o.ModelText, want.text) {
			t.Errorf("%s: %+v", raw, o)
		}
	}
	if _, p := c.Check(`{"days":300}`); p == nil {
		t.Error("arguments that the type does not allow pass")
	}
}

func jsonEqual(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func TestFuncArgumentTypes(t *testing.T) {
	if tl, err := Func("a", "", func(context.Context, *struct{ A int }) (string, error) { return "", nil }); err != nil {
		t.Error(tl, err)
	}
	if tl, err := Func("a", "", func(context.Context, struct{}) (string, error) { return "", nil }); err != nil || len(tl.Parameters) == 0 {
		t.Error(tl, err)
	}
	if _, err := Func("a", "", func(_ context.Context, in map[string]any) (int, error) { return len(in), nil }); err != nil {
		t.Error(err)
	}
	e := new(DefinitionError)
	if _, err := Func("a", "", func(context.Context, string) (string, error) { return "", nil }); !errors.As(err, &e) {
		t.Error("a string as arguments", err)
	}
	if _, err := Func("a", "", func(context.Context, struct{ C chan int }) (string, error) { return "", nil }); !errors.As(err, &e) {
		t.Error("a channel as an argument", err)
	}
	if _, err := Func("a b", "", func(context.Context, struct{}) (string, error) { return "", nil }); !errors.As(err, &e) {
		t.Error("a bad name", err)
	}
	if _, err := Func[struct{}, string]("a", "", nil); !errors.As(err, &e) {
		t.Error("a nil function", err)
	}
}
