package transom

import (
	_ "embed"
	"strings"
)

//go:embed prompt.md
var defaultPrompt string

// compose makes the system message: the default one, with the host's added to it
// or in its place.
func (m SystemMessage) compose() (string, error) {
	base := strings.TrimSpace(defaultPrompt)
	switch m.Mode {
	case "", "append":
		if content := strings.TrimSpace(m.Content); content != "" {
			return base + "\n\n" + content, nil
		}
		return base, nil
	case "replace":
		return m.Content, nil
	}
	return "", &Error{Kind: KindInvalidParams, Msg: "systemMessage.mode " + m.Mode + " is not known: the modes served are append and replace"}
}

// unserved says which settings of a host have no effect.
func unserved(names []string) string {
	return "These settings are known but not served by this version of Transom, and have no effect: " + strings.Join(names, ", ") + ". See docs/protocol.md for what is served."
}
