package transom

import (
	"fmt"
	"testing"
)

func TestSecretsAreTakenOut(t *testing.T) {
	var s secrets
	if got := s.redact("sk-123456"); got != "sk-123456" {
		t.Errorf("without secrets the text changed: %q", got)
	}
	s.provider(&ProviderConfig{
		APIKey: "sk-123456", BearerToken: "sk-123456-longer",
		Headers: map[string]string{"Authorization": "Bearer abcdefgh", "X-Title": "My application"},
	})
	s.add("", "abc", "  ") // too short to be told from a word
	for in, want := range map[string]string{
		"key sk-123456 was refused":        "key ****** was refused",
		"sk-123456-longer":                 "******",
		"Bearer abcdefgh":                  "******",
		"token abcdefgh":                   "token ******",
		"My application and abc are words": "My application and abc are words",
	} {
		if got := s.redact(in); got != want {
			t.Errorf("redact(%q) = %q, want %q", in, got, want)
		}
	}
}

// Of tokens that come anew with every request only the newest are remembered.
func TestLentSecrets(t *testing.T) {
	var s secrets
	s.add("permanent")
	for i := range 3 * maxLent {
		s.lend(fmt.Sprintf("token-%03d", i))
	}
	s.lend("token-095")
	if n := len(s.list()); n != maxLent+1 {
		t.Errorf("%d secrets are kept, want %d", n, maxLent+1)
	}
	if got := s.redact("token-000 token-095 permanent"); got != "token-000 ****** ******" {
		t.Errorf("redacted to %q", got)
	}
}
