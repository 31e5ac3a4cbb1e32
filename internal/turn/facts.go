package turn

import (
	"maps"
	"slices"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/policy"
)

func (d *Durable) foldContext(p event.ContextChanged)         { d.Dir, d.Place = p.Cwd, event.Context(p) }
func (d *Durable) foldName(p event.Named)                     { d.Name, d.AutoNamed = p.Name, p.Auto }
func (d *Durable) foldPermissions(p event.PermissionsChanged) { d.AllowAll = p.Mode == AllowAll }
func (d *Durable) foldReset(event.ApprovalsReset)             { d.Approved = nil }

// Modes of permission, as clients name them.
const (
	Manual   = "manual"
	AllowAll = "allow-all"
)

// approveAll switches between asking about calls and running them unasked.
func (m *machine) approveAll(on bool) {
	if m.s.Live.Settings.ApproveAll == on {
		return
	}
	m.s.Live.Settings.ApproveAll = on
	p := event.PermissionsChanged{PreviousMode: AllowAll, Mode: Manual}
	if on {
		p.PreviousMode, p.Mode = p.Mode, p.PreviousMode
	}
	m.emit(p)
}

// forgotten says that a session that was left with everything allowed asks again:
// whoever resumes it from its log has not chosen that.
func (m *machine) forgotten() {
	if m.s.AllowAll && !m.s.Live.Settings.ApproveAll {
		m.emit(event.PermissionsChanged{PreviousMode: AllowAll, Mode: Manual})
	}
}

// place records what a host knows of the repository. It tells of the directory
// that the session is in, or it is out of date.
func (m *machine) place(c event.Context) {
	if c.Cwd == m.s.Dir && c != m.s.Place {
		m.emit(event.ContextChanged(c))
	}
}

// elicits reports whether a client can ask its user for something.
func elicits(clients []Client) bool {
	return slices.ContainsFunc(clients, func(c Client) bool { return c.Elicits })
}

// Commands lists the slash commands that clients have registered; where two have
// one of the same name, the newest counts.
func (s *State) Commands() []event.CommandInfo {
	var out []event.CommandInfo
	for _, c := range s.Live.Clients {
		for _, cmd := range c.Commands {
			i := slices.IndexFunc(out, func(have event.CommandInfo) bool { return have.Name == cmd.Name })
			if i < 0 {
				out = append(out, cmd)
				continue
			}
			out[i] = cmd
		}
	}
	return out
}

// Owner is the client that runs a slash command; "" where there is none.
func (s *State) Owner(command string) string {
	for i := len(s.Live.Clients) - 1; i >= 0; i-- {
		c := s.Live.Clients[i]
		if slices.ContainsFunc(c.Commands, func(have event.CommandInfo) bool { return have.Name == command }) {
			return c.ID
		}
	}
	return ""
}

// Hooked reports whether there are hooks: of files, or of somebody attached.
func (s *State) Hooked() bool {
	return s.Live.Settings.FileHooks || slices.ContainsFunc(s.Live.Clients, func(c Client) bool { return c.Hooks })
}

// Elicits reports whether somebody attached can ask a user for something.
func (s *State) Elicits() bool { return elicits(s.Live.Clients) }

// newcomers tells clients what those who came or went changed for all.
func (m *machine) newcomers(before State) {
	if is, was := m.s.Elicits(), before.Elicits(); is != was {
		m.emit(event.CapabilitiesChanged{UI: event.UICapabilities{Elicitation: is}})
	}
	if is := m.s.Commands(); !slices.Equal(is, before.Commands()) {
		if is == nil {
			is = []event.CommandInfo{}
		}
		m.emit(event.CommandsChanged{Commands: is})
	}
}

// rules are those of hosts, and what was approved since.
func (m *machine) rules() policy.Rules {
	r := m.s.Live.Settings.Rules
	r.Granted = append(slices.Clip(r.Granted), m.root().Approved...)
	return r
}

// answerer notes whether a client answers permission questions.
func (m *machine) answerer(a Answerer) {
	clients := slices.Clone(m.s.Live.Clients)
	for i := range clients {
		if clients[i].ID == a.ClientID {
			clients[i].Permission = a.Answers
		}
	}
	m.s.Live.Clients = clients
}

// limited tells what the session may cost, where that was something else before.
func (m *machine) limited(before float64) {
	if m.s.Live.Settings.Credits != before {
		m.emit(event.SessionLimitsChanged{Limits: m.s.limits()})
	}
}

// limits is what the session may cost; nil is anything.
func (s *State) limits() *event.SessionLimits {
	if s.Live.Settings.Credits <= 0 {
		return nil
	}
	return &event.SessionLimits{MaxAICredits: s.Live.Settings.Credits}
}

// foldClientMetadata changes what clients keep. The map is never changed in place.
func (d *Durable) foldClientMetadata(p event.ClientMetadata) {
	d.ClientMetadata = PatchMetadata(d.ClientMetadata, p)
}

// PatchMetadata is what clients keep after a change.
func PatchMetadata(old map[string]string, p event.ClientMetadata) map[string]string {
	out := map[string]string{}
	if !p.Clear {
		maps.Copy(out, old)
	}
	for _, k := range p.Remove {
		delete(out, k)
	}
	maps.Copy(out, p.Set)
	return out
}
