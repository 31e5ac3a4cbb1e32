package transom

import (
	"slices"
	"strings"
	"sync"
)

// secrets are the keys and tokens that the runtime was given. They are taken out
// of what handlers threw and of what providers answered before it is written.
type secrets struct {
	mu       sync.RWMutex
	values   []string
	replacer *strings.Replacer
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
		if len(v) >= minSecret && !slices.Contains(s.values, v) {
			s.values = append(s.values, v)
			changed = true
		}
	}
	if !changed {
		return
	}
	// Longest first: a secret that contains another goes as a whole.
	slices.SortFunc(s.values, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(s.values))
	for _, v := range s.values {
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
	for name, value := range p.Headers {
		name = strings.ToLower(name)
		for _, word := range []string{"authorization", "key", "token", "secret", "password", "cookie"} {
			if strings.Contains(name, word) {
				s.add(value, strings.TrimPrefix(value, "Bearer "))
			}
		}
	}
}

// list returns the secrets.
func (s *secrets) list() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.values)
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
