package turn

import (
	"testing"

	"github.com/transom-run/transom/event"
)

// TestOrigin: an answer names the message that a host sent and waits for, whatever
// led from there to here: a clear and its seed, a chain of them, steering, a hook.
func TestOrigin(t *testing.T) {
	for name, commands := range map[string]string{
		"plain":       `new; send "go"; model text "x"`,
		"tools":       `new tools=a; send "go"; model call c1 a {}; answer c1 "r"; model text "x"`,
		"clear":       `new tools=end!; send "go"; model call c1 end {}; clear "SEED"; answer c1 "r"; model text "x"`,
		"chain":       `new tools=end!; send "go"; model call c1 end {}; clear "ONE"; answer c1 "r"; model call c2 end {}; clear "TWO"; answer c2 "r"; model text "x"`,
		"restart":     `new tools=end!; send "go"; model call c1 end {}; clear "SEED"; kill; resume B continue; model text "x"`,
		"steered":     `new tools=a; send "go"; model call c1 a {}; send "left" immediate; answer c1 "r"; model text "x"`,
		"steered on":  `new tools=end!; send "go"; model call c1 end {}; send "left" immediate; answer c1 "r"; model text "x"`,
		"hook":        `new hooks; send "go"; hook {"additionalContext":"C"}; hook; hook; model text "x"`,
		"agent stop":  `new hooks; send "go"; hook; hook; hook; model text "y"; hook {"decision":"block","reason":"on"}; model text "x"`,
		"after first": `new; send "first"; model text "y"; send "go"; model text "x"`,
	} {
		t.Run(name, func(t *testing.T) {
			p := script(t, commands)
			sent, last := "", ""
			for _, e := range p.log {
				switch e.Type {
				case event.TypeUserMessage:
					if d, err := event.As[event.UserMessage](e); err == nil && d.Content == "go" {
						sent = d.MessageID
					}
				case event.TypeAssistantMessage:
					if d, err := event.As[event.AssistantMessage](e); err == nil {
						last = d.OriginatingMessageID
					}
				}
			}
			if sent == "" || last != sent {
				t.Errorf("the last answer goes back to %q, the message sent is %q", last, sent)
			}
		})
	}
}
