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
	const custom = `{"kind":"custom-tool","toolName":"t"}`
	for _, tc := range []struct {
		granted string
		request string
		want    bool
		prompt  string
	}{
		{"", custom, true, ""},
		{"tool:t", custom, false, ""},
		{"tool:other tool:T tool:", custom, true, ""},
		{"command:git command:ls", `{"kind":"shell","commands":[{"identifier":"git"},{"identifier":"ls"}]}`, false, ""},
		{"command:git", `{"kind":"shell","commands":[{"identifier":"git"},{"identifier":"rm"}]}`, true, ""},
		{"command:git", `{"kind":"shell","commands":[]}`, true, ""},
		{"read", `{"kind":"read","path":"/x"}`, false, ""},
		{"read", `{"kind":"write","fileName":"/x"}`, true, ""},
		{"domain:example.org", `{"kind":"url","url":"https://example.org/a"}`, false, ""},
		{"domain:example.org", `{"kind":"url","url":"https://evil.example/example.org"}`, true, ""},
		{"mcp:s/*", `{"kind":"mcp","serverName":"s","toolName":"x"}`, false, ""},
		{"mcp:s/y", `{"kind":"mcp","serverName":"s","toolName":"x"}`, true, ""},
		// A tool by its own name, where no name for models could be meant; a server of
		// an agent is another than the session's.
		{"mcp:s/x", `{"kind":"mcp","serverName":"s","toolName":"s-x"}`, false, ""},
		{"mcp:s/x", `{"kind":"mcp","serverName":"s","toolName":"s-y"}`, true, ""},
		{"mcp:s/s-x", `{"kind":"mcp","serverName":"s","toolName":"s-s-x"}`, true, ""},
		{"mcp:s/x", `{"kind":"mcp","serverName":"s","toolName":"t-x"}`, true, ""},
		{"mcp:s/s-x", `{"kind":"mcp","serverName":"s","serverAgent":"a","toolName":"s-x"}`, true, ""},
		{"mcp:s/*", `{"kind":"mcp","serverName":"s","serverAgent":"a","toolName":"s-x"}`, true, ""},
		{"mcp:*", `{"kind":"mcp","serverName":"s","serverAgent":"a","toolName":"s-x"}`, false, ""},
		{"agent-mcp:a/s/s-x", `{"kind":"mcp","serverName":"s","serverAgent":"a","toolName":"s-x"}`, false, ""},
		{"agent-mcp:a/s/*", `{"kind":"mcp","serverName":"s","serverAgent":"a","toolName":"s-x"}`, false, ""},
		{"agent-mcp:a/s/s-x agent-mcp:a/s/*", `{"kind":"mcp","serverName":"s","serverAgent":"b","toolName":"s-x"}`, true, ""},
		{"agent-mcp:a/s/*", `{"kind":"mcp","serverName":"s","toolName":"s-x"}`, true, ""},
		{"domain:example.org", `{"kind":"url","url":"https://EXAMPLE.org./a"}`, false, ""},
		{"domain:example.org", `{"kind":"url","url":"https://example.org@evil.example/"}`, true, ""},
		{"domain:example.org", `{"kind":"url","url":"https://www.example.org/"}`, true, ""},
		{"domain:*.example.org", `{"kind":"url","url":"https://www.example.org/"}`, false, ""},
		{"domain:*.example.org", `{"kind":"url","url":"https://notexample.org/"}`, true, ""},
		// Names that read as "all of it" cover nothing beyond, and nothing is covered
		// by what looks like another kind's.
		{"command:ls", `{"kind":"shell","commands":[{"identifier":"*"}]}`, true, ""},
		{"command:*", `{"kind":"shell","commands":[{"identifier":"ls"}]}`, false, ""},
		{"command:./*", `{"kind":"shell","commands":[{"identifier":"./evil"}]}`, true, ""},
		{"mcp:s/*", `{"kind":"custom-tool","toolName":"s/x"}`, true, ""},
		{"tool:t", `{"kind":"new","toolName":"t"}`, true, ""},
		{"tool:t", `nonsense`, true, ""},
		// What only the call itself can be approved for.
		{"write", `{"kind":"write","fileName":"/etc/x","canOfferSessionApproval":false}`, true, ""},
		{"write", `{"kind":"write","fileName":"x","canOfferSessionApproval":true}`, false, ""},
		{"command:cat", `{"kind":"shell","commands":[{"identifier":"cat"}],"canOfferSessionApproval":false}`, true, ""},
		{"read", `{"kind":"read","path":"/etc/x"}`, true, `{"kind":"path","accessKind":"read","paths":["/etc/x"]}`},
	} {
		rules := Rules{Granted: strings.Fields(tc.granted)}
		if got := rules.Asks(json.RawMessage(tc.request), json.RawMessage(tc.prompt)); got != tc.want {
			t.Errorf("%s with %q: asks %v", tc.request, tc.granted, got)
		}
		if (Rules{ApproveAll: true}).Asks(json.RawMessage(tc.request), nil) {
			t.Errorf("%s asks though all is approved", tc.request)
		}
	}
}

func TestGrants(t *testing.T) {
	const asked = `{"kind":"custom-tool","toolName":"asked"}`
	for _, tc := range []struct{ approval, domain, asked, want string }{
		{"", "", asked, "tool:asked"},
		{"null", "", asked, "tool:asked"},
		{`{"kind":"custom-tool"}`, "", asked, "tool:asked"},
		{`{"kind":"custom-tool","toolName":"named"}`, "", asked, "tool:named"},
		{`{"kind":"commands","commandIdentifiers":["a","b"]}`, "", asked, "command:a command:b"},
		{`{"kind":"commands","commandIdentifiers":["*","./*","ls"]}`, "", asked, "command:ls"},
		{"", "", `{"kind":"shell","commands":[{"identifier":"*"}],"canOfferSessionApproval":true}`, ""},
		{"", "", `{"kind":"mcp","serverName":"s","toolName":"*"}`, ""},
		{"", "Example.ORG.", asked, "domain:example.org"},
		{`{"kind":"mcp","serverName":"s","toolName":null}`, "", asked, "mcp:s/*"},
		{`{"kind":"mcp","serverName":"s","toolName":"t"}`, "", asked, "mcp:s/t"},
		{"", "", `{"kind":"mcp","serverName":"s","serverAgent":"a b","toolName":"s-t"}`, "agent-mcp:a_b/s/s-t"},
		{`{"kind":"mcp","serverName":"s","toolName":"s-t"}`, "", `{"kind":"mcp","serverName":"s","serverAgent":"a","toolName":"s-t"}`, "agent-mcp:a/s/s-t"},
		{`{"kind":"mcp","serverName":"s"}`, "", `{"kind":"mcp","serverName":"s","serverAgent":"a","toolName":"s-t"}`, "agent-mcp:a/s/*"},
		{`{"kind":"mcp","serverName":"other"}`, "", `{"kind":"mcp","serverName":"s","serverAgent":"a","toolName":"s-t"}`, "mcp:other/*"},
		{`{"kind":"write"}`, "", asked, "write"},
		{"", "example.org", asked, "domain:example.org"},
		{"", "", `{"kind":"write","canOfferSessionApproval":false}`, ""},
		{"", "", `{"kind":"write","canOfferSessionApproval":true}`, "write"},
		{`{}`, "", asked, ""},
		{`"x"`, "", asked, ""},
	} {
		if got := strings.Join(Grants(json.RawMessage(tc.approval), tc.domain, json.RawMessage(tc.asked)), " "); got != tc.want {
			t.Errorf("%s %s covers %q, want %q", tc.approval, tc.domain, got, tc.want)
		}
	}
}

// What a lasting approval without a word of its own covers is what is told to
// clients, and what is granted.
func TestApprovalGrantsWhatWasAsked(t *testing.T) {
	for _, asked := range []string{
		`{"kind":"custom-tool","toolName":"t"}`, `{"kind":"mcp","serverName":"s","toolName":"t"}`, `{"kind":"read"}`,
		`{"kind":"shell","commands":[{"identifier":"git"},{"identifier":"ls"}]}`, `{"kind":"write"}`, `{"kind":"memory"}`,
	} {
		raw := json.RawMessage(asked)
		if (Rules{Granted: Grants(Approval(raw), "", raw)}).Asks(raw, nil) {
			t.Errorf("%s asks again after %s", asked, Approval(raw))
		}
	}
	if Approval(json.RawMessage(`{"kind":"url","url":"https://example.org"}`)) != nil {
		t.Error("a URL is approved by its domain")
	}
}

// TestDenies: a rule that forbids holds however the thing is written.
func TestDenies(t *testing.T) {
	for _, tc := range []struct {
		denied, request string
		want            bool
	}{
		{"command:rm", `{"kind":"shell","commands":[{"identifier":"ls"},{"identifier":"/bin/rm"}]}`, true},
		{"command:git", `{"kind":"shell","commands":[{"identifier":"git push"}]}`, true},
		{"command:git push", `{"kind":"shell","commands":[{"identifier":"/usr/bin/git push"}]}`, true},
		{"command:git push", `{"kind":"shell","commands":[{"identifier":"git status"}]}`, false},
		{"command:*", `{"kind":"shell","commands":[{"identifier":"ls"}]}`, true},
		{"command:rm", `{"kind":"shell","commands":[{"identifier":"rmdir"}]}`, false},
		// Also what only the call itself could be approved for.
		{"command:rm", `{"kind":"shell","commands":[{"identifier":"rm"}],"canOfferSessionApproval":false}`, true},
		{"domain:evil.example", `{"kind":"url","url":"https://EVIL.example./x"}`, true},
		{"domain:evil.example", `{"kind":"url","url":"https://www.evil.example/x"}`, true},
		{"domain:*.evil.example", `{"kind":"url","url":"https://www.evil.example/x"}`, true},
		{"domain:evil.example", `{"kind":"url","url":"https://evil.example@good.example/x"}`, false},
		{"domain:evil.example", `{"kind":"url","url":"https://evil.example:8443/x"}`, true},
		{"domain:evil.example", `{"kind":"url","url":"https://notevil.example/"}`, false},
		{"mcp:s/*", `{"kind":"mcp","serverName":"s","toolName":"x"}`, true},
		// A tool by its own name and by the one for models, whoever has the server.
		{"mcp:s/x", `{"kind":"mcp","serverName":"s","toolName":"s-x"}`, true},
		{"mcp:s/s-x", `{"kind":"mcp","serverName":"s","toolName":"s-x"}`, true},
		{"mcp:my s/a.b", `{"kind":"mcp","serverName":"my s","toolName":"my_s-a_b"}`, true},
		{"mcp:s/x", `{"kind":"mcp","serverName":"s","serverAgent":"a","toolName":"s-x"}`, true},
		{"mcp:s/*", `{"kind":"mcp","serverName":"s","serverAgent":"a","toolName":"s-x"}`, true},
		{"tool:s-x", `{"kind":"mcp","serverName":"s","toolName":"s-x"}`, true},
		{"mcp:s/x", `{"kind":"mcp","serverName":"s","toolName":"s-y"}`, false},
		{"mcp:s/x", `{"kind":"mcp","serverName":"t","toolName":"t-x"}`, false},
		{"write", `{"kind":"write","fileName":"x","canOfferSessionApproval":false}`, true},
		{"", `{"kind":"write"}`, false},
	} {
		var r Rules
		if tc.denied != "" {
			r.Denied = []string{tc.denied}
		}
		if got := r.Denies(json.RawMessage(tc.request)); got != tc.want {
			t.Errorf("%s with %q denied: %v", tc.request, tc.denied, got)
		}
	}
}

// TestMatchesURL: a rule about URLs covers what a server would take for it, and
// nothing that only looks so.
func TestMatchesURL(t *testing.T) {
	for _, tc := range []struct {
		pattern, url string
		want         bool
	}{
		{"example.org", "https://example.org/a", true},
		{"example.org", "http://EXAMPLE.org:8080", true},
		{"Example.org.", "https://example.org", true},
		{"example.org:8080", "https://example.org:8080/a", true},
		{"example.org:8080", "https://example.org/a", false},
		{"https://example.org", "http://example.org/", false},
		{"*.example.org", "https://a.b.example.org", true},
		{"*.example.org", "https://evilexample.org", false},
		{"example.org", "https://example.org.evil.example", false},
		{"example.org", "https://example.org@evil.example/", false},
		{"example.org", "https://evil.example#example.org", false},
		{"example.org", "https://evil.example\\@example.org", false},
		{"example.org/docs", "https://example.org/docs/x", true},
		{"example.org/docs/", "https://example.org/docs", true},
		{"example.org/docs", "https://example.org/docsx", false},
		{"example.org/docs", "https://example.org/docs/../admin", false},
		{"example.org/docs", "https://example.org/docs/%2e%2e/admin", false},
		{"example.org/docs", "https://example.org/docs/%252e%252e/admin", false},
		{"example.org/docs", "https://example.org/docs/..%5cadmin", false},
		{"[::1]:80", "http://[::1]:80/", true},
		{"", "https://example.org", false},
		{"example.org", "example.org", false},
	} {
		if got := matchesURL(tc.pattern, tc.url); got != tc.want {
			t.Errorf("%q of %q: %v", tc.url, tc.pattern, got)
		}
		asks := Rules{URLs: []string{tc.pattern}}.Asks(json.RawMessage(`{"kind":"url","url":"`+strings.ReplaceAll(tc.url, `\`, `\\`)+`"}`), nil)
		if asks == tc.want {
			t.Errorf("%q with the rule %q asks: %v", tc.url, tc.pattern, asks)
		}
	}
}

// FuzzRules: what came with a call never makes a grant that covers more than the
// call, and what a rule forbids is forbidden.
func FuzzRules(f *testing.F) {
	f.Add("ls", "rm", "https://example.org/a")
	f.Add("*", "./*", "https://example.org@evil.example")
	f.Add("git push", "git", "http://[::1]:80/..")
	f.Add(":*", "/*", "http://*.a")
	f.Fuzz(func(t *testing.T, name, other, link string) {
		quote := func(s string) string {
			b, _ := json.Marshal(s)
			return string(b)
		}
		for _, kind := range []string{`{"kind":"shell","commands":[{"identifier":%}]}`, `{"kind":"custom-tool","toolName":%}`, `{"kind":"mcp","serverName":"s","toolName":%}`, `{"kind":"url","url":%}`} {
			of := func(s string) json.RawMessage { return json.RawMessage(strings.Replace(kind, "%", quote(s), 1)) }
			a, b := name, other
			if strings.Contains(kind, "url") {
				a = link
			}
			granted := Grants(nil, "", of(a))
			if Approval(of(a)) == nil && len(granted) > 0 && !strings.Contains(kind, "url") {
				t.Errorf("%s is granted %v though no approval can be told of", of(a), granted)
			}
			covered := !Rules{Granted: granted}.Asks(of(b), nil)
			if covered && !cmp.Equal(subjects(of(a)), subjects(of(b))) {
				t.Errorf("an approval of %s covers %s", of(a), of(b))
			}
			if keys := subjects(of(a)); len(keys) > 0 && !(Rules{Denied: keys}).Denies(of(a)) {
				t.Errorf("%v is forbidden, and %s is not", keys, of(a))
			}
		}
		argument := other
		_ = Key(name, &argument)
		if matchesURL(name, link) && link == "" {
			t.Error("nothing matches")
		}
	})
}
