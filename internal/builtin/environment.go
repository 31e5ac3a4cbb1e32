package builtin

import (
	"os"
	"strings"
)

// quiet makes programs behave as they should with nobody at the terminal: no
// pager, no editor, no questions, no colours.
var quiet = []string{
	"TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat", "GH_PAGER=cat", "MANPAGER=cat", "SYSTEMD_PAGER=cat",
	"GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "DEBIAN_FRONTEND=noninteractive", "BASH_SILENCE_DEPRECATION_WARNING=1",
}

// minSecret is the length from which a secret is looked for inside of values:
// shorter ones would be found everywhere, and are compared whole.
const minSecret = 6

// environment is what a command sees: nothing of what Transom was entrusted
// with, by name or by value.
func (s *Set) environment() []string {
	all := s.cfg.Environ
	if all == nil {
		all = os.Environ()
	}
	var secrets []string
	if s.cfg.Secrets != nil {
		secrets = s.cfg.Secrets()
	}
	out := make([]string, 0, len(all)+len(quiet))
	for _, kv := range all {
		name, value, _ := strings.Cut(kv, "=")
		if name == "" || s.cfg.HideEnv != nil && s.cfg.HideEnv(name) || holds(value, secrets) {
			continue
		}
		switch name {
		// A shell that is not interactive reads these and runs what they name.
		case "BASH_ENV", "ENV":
			continue
		}
		out = append(out, kv)
	}
	return append(out, quiet...)
}

func holds(value string, secrets []string) bool {
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		if value == secret || len(secret) >= minSecret && strings.Contains(value, secret) {
			return true
		}
	}
	return false
}
