package transom

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/transom-run/transom/internal/policy"
	"github.com/transom-run/transom/internal/turn"
)

// Permissions are what hosts have decided about calls beforehand. They hold while
// the session is loaded, and are not written down. Rules are the keys that
// [RuleKey] makes.
type Permissions struct {
	Allow []string // runs without asking
	Deny  []string // never runs; goes before everything that allows
	// Located is what is allowed at the session's location: see [Runtime.Location].
	Located []string
	Reads   bool // reading files and URLs needs no approval
	AnyURL  bool // fetching needs no approval
	// URLs are hosts, domains ("*.example.com") and beginnings of URLs that may be
	// fetched without asking.
	URLs  []string
	Paths Paths
}

// Paths is where tools may work.
type Paths struct {
	Primary string   // in place of the working directory; "" is that
	Extra   []string // absolute
	NoTemp  bool     // the system's directory for temporary files is not among them
	Any     bool     // everywhere
}

// RuleKey is the key of a rule: its kind ("read", "write", "shell",
// "custom-tool", "mcp", "url", "memory", or the name of an MCP server) and what of
// that kind; nil is all of it.
func RuleKey(kind string, argument *string) string { return policy.Key(kind, argument) }

// Permit changes how calls are approved. Result: nil.
type Permit struct {
	// ApproveAll lets every call run without asking, or ends that; nil leaves it.
	// It does not outlive the process.
	ApproveAll *bool
	// Forget takes back what was approved for the session.
	Forget bool
	// Change changes the host's decisions. It must be pure; nil changes nothing.
	Change func(*Permissions)

	answerer *turn.Answerer
}

// AnswersPermissions makes the command by which this client says that it answers
// permission questions; off goes back to what it said when it attached.
func (h *Session) AnswersPermissions(on bool) Permit {
	return Permit{answerer: &turn.Answerer{ClientID: h.client.ID, Answers: on || h.client.Permission}}
}

func (Permit) op() string { return "session.permissions.configure" }
func (p Permit) body() (turn.Body, error) {
	in := turn.Configure{ApproveAll: p.ApproveAll, Forget: p.Forget, Answerer: p.answerer}
	if p.Change != nil {
		in.Settings = func(s *turn.Settings) {
			now := permissionsOf(s)
			p.Change(&now)
			s.Rules = policy.Rules{Granted: now.Allow, Denied: now.Deny, Located: now.Located, Reads: now.Reads, AnyURL: now.AnyURL, URLs: now.URLs}
			s.Paths = turn.Paths(now.Paths)
		}
	}
	return in, nil
}

// permissionsOf is a copy that may be changed.
func permissionsOf(s *turn.Settings) Permissions {
	p := Permissions{
		Allow: slices.Clone(s.Rules.Granted), Deny: slices.Clone(s.Rules.Denied), Located: slices.Clone(s.Rules.Located),
		Reads: s.Rules.Reads, AnyURL: s.Rules.AnyURL, URLs: slices.Clone(s.Rules.URLs), Paths: Paths(s.Paths),
	}
	p.Paths.Extra = slices.Clone(p.Paths.Extra)
	return p
}

// Permissions returns what hosts have decided, and whether every call runs
// without asking.
func (h *Session) Permissions() (p Permissions, approveAll bool) {
	s := &h.sess.View().Live.Settings
	return permissionsOf(s), s.ApproveAll
}

// Directories returns where tools may work: the primary directory, and all of
// them, that one included.
func (h *Session) Directories() (primary string, all []string) {
	return directories(h.sess.View())
}

func directories(v *turn.State) (primary string, all []string) {
	p := v.Live.Settings.Paths
	primary = v.Dir
	if p.Primary != "" {
		primary = p.Primary
	}
	all = append([]string{primary}, p.Extra...)
	if !p.NoTemp {
		all = append(all, os.TempDir())
	}
	slices.Sort(all[1:])
	return primary, slices.Compact(all)
}

// Within reports whether a path, with all links in it followed, lies where tools
// may work; primary looks at the primary directory alone.
func (h *Session) Within(path string, primary bool) bool {
	v := h.sess.View()
	first, all := directories(v)
	if v.Live.Settings.Paths.Any && !primary {
		return true
	}
	if primary {
		all = []string{first}
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(v.Dir, path)
	}
	path = followed(path)
	return slices.ContainsFunc(all, func(dir string) bool { return below(followed(dir), path) })
}

// below reports whether a path is a directory or in it.
func below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// followed follows the links of a path, as far as it exists.
func followed(path string) string {
	path = filepath.Clean(path)
	rest := ""
	for {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(real, rest)
		}
		up := filepath.Dir(path)
		if up == path {
			return filepath.Join(path, rest)
		}
		rest = filepath.Join(filepath.Base(path), rest)
		path = up
	}
}
