package transom

import (
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/transom-run/transom/mcp"
)

// secrets are the keys and tokens that the runtime was given. They are taken out
// of what handlers threw and of what providers answered before it is written.
type secrets struct {
	mu       sync.RWMutex
	values   []string
	lent     []string            // tokens of one request each, the oldest first
	held     map[string][]string // those that take the place of each other, by what they are of
	replacer *strings.Replacer
}

// maxLent is how many tokens of one request each are remembered.
const maxLent = 32

// placeholders are what people write where a key is asked for and none is needed.
// They are no secrets, and stand in too many texts to be taken out of them.
const placeholders = " ollama lm-studio lmstudio llama.cpp llamacpp not-needed no-key-required sk-no-key-required no-key nokey none-needed " +
	"dummy-key dummy-api-key placeholder test-key api-key apikey your-api-key changeme unused anything secret password local-key localhost "

func isPlaceholder(v string) bool {
	return !strings.ContainsRune(v, ' ') && strings.Contains(placeholders, " "+strings.ToLower(v)+" ")
}

// minSecret is the length below which a value is too common a word to be taken
// out of texts.
const minSecret = 6

// add remembers values; blank and very short ones are passed over.
func (s *secrets) add(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := false
	for _, v := range values {
		v = strings.TrimSpace(v)
		if len(v) >= minSecret && !slices.Contains(s.values, v) && !isPlaceholder(v) {
			s.values = append(s.values, v)
			changed = true
		}
	}
	if changed {
		s.rebuild()
	}
}

// lend remembers a token that a host gave for one request. Only the newest are
// kept: a host may give a new one every time.
func (s *secrets) lend(token string) {
	token = strings.TrimSpace(token)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(token) < minSecret || slices.Contains(s.lent, token) || slices.Contains(s.values, token) {
		return
	}
	if s.lent = append(s.lent, token); len(s.lent) > maxLent {
		s.lent = slices.Delete(s.lent, 0, 1)
	}
	s.rebuild()
}

// maxHeld is how many of such values are remembered: those before the last may still
// be on their way.
const maxHeld = 12

// hold remembers values that take the place of earlier ones of the same thing, as the
// tokens of a login do.
func (s *secrets) hold(of string, values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.held[of]
	changed := false
	for _, v := range values {
		if v = strings.TrimSpace(v); len(v) >= minSecret && !slices.Contains(now, v) {
			now, changed = append(slices.Clone(now), v), true
		}
	}
	if !changed {
		return
	}
	if s.held == nil {
		s.held = map[string][]string{}
	}
	s.held[of] = now[max(0, len(now)-maxHeld):]
	s.rebuild()
}

// all are the secrets. mu is held.
func (s *secrets) all() []string {
	out := slices.Concat(s.values, s.lent)
	for _, values := range s.held {
		out = append(out, values...)
	}
	return out
}

// rebuild makes the replacer. mu is held.
func (s *secrets) rebuild() {
	all := s.all()
	// Longest first: a secret that contains another goes as a whole.
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(all))
	for _, v := range all {
		pairs = append(pairs, v, "******")
	}
	s.replacer = strings.NewReplacer(pairs...)
}

// provider remembers what a provider's configuration holds.
func (s *secrets) provider(p *ProviderConfig) {
	if p == nil {
		return
	}
	s.add(p.APIKey, p.BearerToken)
	if u, err := url.Parse(p.BaseURL); err == nil {
		if password, ok := u.User.Password(); ok {
			s.add(password)
		}
		for name, values := range u.Query() {
			if private(name) {
				s.add(values...)
			}
		}
	}
	s.headers(p.Headers)
}

// headers remembers the values of headers that hold secrets by their names.
func (s *secrets) headers(headers map[string]string) {
	for name, value := range headers {
		if private(name) {
			_, credentials, _ := strings.Cut(value, " ") // "Bearer x", "Basic x"
			s.add(value, credentials)
		}
	}
}

// server remembers what a server's configuration holds.
func (s *secrets) server(c mcp.Server) {
	s.headers(c.Headers)
	s.variables(c.Env)
	s.add(c.OAuthClientSecret)
}

// variables remembers the values of variables that hold secrets by their names, and
// look like such: "TOKEN_FILE=/run/token" and "KEYBOARD=german" hold none.
func (s *secrets) variables(env map[string]string) {
	for name, value := range env {
		if private(name) && len(value) >= 8 && !strings.ContainsAny(value[:1], "/.~$") && (len(value) >= 20 || strings.ContainsAny(value, "0123456789")) {
			s.add(value)
		}
	}
}

// private reports whether what has this name is a secret by all appearance.
func private(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"authorization", "key", "token", "secret", "passw", "cookie", "credential"}, func(word string) bool { return strings.Contains(name, word) })
}

// list returns the secrets.
func (s *secrets) list() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.all()
}

// redact takes the secrets out of a text.
func (s *secrets) redact(text string) string {
	s.mu.RLock()
	r := s.replacer
	s.mu.RUnlock()
	if r == nil {
		return text
	}
	return r.Replace(text)
}
