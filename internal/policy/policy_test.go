package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	approval := json.RawMessage(`{"kind":"custom-tool","toolName":"t"}`)
	for raw, want := range map[string]Decision{
		`{"kind":"approve-once"}`:        {Verdict: Allow, Kind: "approved"},
		`{"kind":"approved"}`:            {Verdict: Allow, Kind: "approved"},
		`{"kind":"approve-permanently"}`: {Verdict: Allow, Kind: "approved"},
		`{"kind":"approve-for-session","approval":{"kind":"custom-tool","toolName":"t"}}`: {
			Verdict: Allow, Kind: "approved-for-session", Approval: approval, Lasting: true,
		},
		`{"kind":"approve-for-location","locationKey":"k"}`: {Verdict: Allow, Kind: "approved-for-location", LocationKey: "k", Lasting: true},
		`{"kind":"reject"}`: {Verdict: Reject, Kind: "denied-interactively-by-user", Text: "The user rejected this tool call."},
		`{"kind":"reject","feedback":"no"}`: {
			Verdict: Deny, Kind: "denied-interactively-by-user", Text: "The user rejected this tool call. User feedback: no", Feedback: "no",
		},
		`{"kind":"denied-interactively-by-user"}`: {Verdict: Reject, Kind: "denied-interactively-by-user", Text: TextRejected},
		`{"kind":"user-not-available"}`:           NotAvailable(),
		`{"kind":"cancelled"}`:                    {Verdict: Deny, Kind: "cancelled", Text: TextNotAvailable},
		`{"kind":"denied-by-rules","rules":[{"kind":"Shell","argument":null}]}`: {
			Verdict: Deny, Kind: "denied-by-rules", Text: textByRules, Rules: []json.RawMessage{json.RawMessage(`{"kind":"Shell","argument":null}`)},
		},
		`{"kind":"denied-by-content-exclusion-policy","path":"p","message":"m"}`: {
			Verdict: Deny, Kind: "denied-by-content-exclusion-policy", Text: "Permission denied: m", Path: "p", Message: "m",
		},
		`{"kind":"denied-by-permission-request-hook"}`: {Verdict: Deny, Kind: "denied-by-permission-request-hook", Text: "Permission denied"},
		`{"kind":"no-result"}`:                         {Verdict: None},
	} {
		if diff := cmp.Diff(want, Parse(json.RawMessage(raw))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		}
	}
}

// TestUnknown: whatever is not understood is a denial, and is reported.
func TestUnknown(t *testing.T) {
	for _, raw := range []string{"", "null", "true", "[]", "{}", `{"kind":""}`, `{"kind":"yes"}`, `{"kind":"APPROVED"}`, `{"kind":"approved "}`, `{"kind":1}`, `{"kind":"approved"`, `{"kind":"approve-once","feedback":{}}`} {
		if d := Parse(json.RawMessage(raw)); d.Verdict != Deny || !d.Unknown || d.Text == "" || d.Kind == "" {
			t.Errorf("%s: %+v", raw, d)
		}
	}
}

// FuzzParse: only the words for yes allow anything.
func FuzzParse(f *testing.F) {
	f.Add(`{"kind":"approve-once"}`)
	f.Add(`{"kind":"reject","feedback":"x"}`)
	f.Add(`{"KIND":"approved","kind":"no"}`)
	f.Fuzz(func(t *testing.T, raw string) {
		d := Parse(json.RawMessage(raw))
		if d.Verdict == Allow && !strings.Contains(raw, "approve") && !strings.Contains(raw, `\u`) {
			t.Errorf("%s is allowed", raw)
		}
		if d.Verdict != Allow && d.Lasting || d.Verdict == "" {
			t.Errorf("%s: %+v", raw, d)
		}
		if (d.Verdict == Deny || d.Verdict == Reject) && d.Text == "" {
			t.Errorf("%s is denied without a word", raw)
		}
	})
}

func TestAsks(t *testing.T) {
	for _, tc := range []struct {
		rules Rules
		skip  bool
		want  bool
	}{
		{Rules{}, false, true},
		{Rules{}, true, false},
		{Rules{ApproveAll: true}, false, false},
		{Rules{Tools: []string{"t"}}, false, false},
		{Rules{Tools: []string{"other", "T", ""}}, false, true},
	} {
		if got := tc.rules.Asks("t", tc.skip); got != tc.want {
			t.Errorf("%+v, skip %v: asks %v", tc.rules, tc.skip, got)
		}
	}
}

func TestApprovedTool(t *testing.T) {
	for raw, want := range map[string]string{
		"":                       "asked",
		"null":                   "asked",
		`{"kind":"custom-tool"}`: "asked",
		`{"kind":"custom-tool","toolName":"named"}`: "named",
		`{"kind":"commands"}`:                       "",
		`{}`:                                        "",
		`"x"`:                                       "",
	} {
		if got := ApprovedTool(json.RawMessage(raw), "asked"); got != want {
			t.Errorf("%s covers %q, want %q", raw, got, want)
		}
	}
}
