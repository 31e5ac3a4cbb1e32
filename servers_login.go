package transom

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/transom-run/transom/internal/vault"
	"github.com/transom-run/transom/mcp"
)

// MCPLogin says how a session logs in to MCP servers.
type MCPLogin struct {
	// Persist keeps the tokens of logins in files under the runtime's home, for all
	// sessions that say so, and for later. Otherwise they end with the session.
	Persist bool
	// ClientMetadata is the address of a document that describes the host as an OAuth
	// client, for authorization servers that take it in place of a registration.
	ClientMetadata string
}

// loginKept is the tokens of a session's logins that end with it, and how it logs in.
type loginKept struct {
	mu  sync.Mutex
	how MCPLogin
	own *vault.Vault // nil: none was kept yet
}

func (t *loginKept) set(how MCPLogin) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.how = how
}

func (t *loginKept) metadata() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.how.ClientMetadata
}

// sessionVault is where a session keeps tokens at the moment.
type sessionVault struct {
	r *Runtime
	s *loaded
}

func (v sessionVault) now() *vault.Vault {
	t := &v.s.servers.tokens
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.how.Persist {
		return v.r.tokens
	}
	if t.own == nil {
		t.own = vault.Memory()
	}
	return t.own
}

func (v sessionVault) Load(key string) ([]byte, error) { return v.now().Load(key) }

func (v sessionVault) Change(ctx context.Context, key string, change func([]byte) ([]byte, error)) error {
	return v.now().Change(ctx, key, change)
}

// loads are the model calls that wait for servers.
type loads struct {
	mu   sync.Mutex
	n    int
	ends map[int]context.CancelFunc
}

// wait notes that one waits, which end ends. done says that it does no more.
func (l *loads) wait(end context.CancelFunc) (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends == nil {
		l.ends = map[int]context.CancelFunc{}
	}
	l.n++
	n := l.n
	l.ends[n] = end
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.ends, n)
	}
}

// release ends all waits, and reports whether there was one.
func (l *loads) release() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	waited := len(l.ends) > 0
	for _, end := range l.ends {
		end()
	}
	clear(l.ends)
	return waited
}

// hostFor finds the host that has a server of some name, and how that stands: the
// session's own, else one of its agents'. nil is none.
func (s *loaded) hostFor(name string) (mcp.Host, mcp.State) {
	own := &s.agents.servers
	own.mu.Lock()
	hosts := []mcp.Host{s.hostOf()}
	for _, kind := range slices.Sorted(maps.Keys(own.kinds)) {
		hosts = append(hosts, own.kinds[kind].host)
	}
	own.mu.Unlock()
	for _, h := range hosts {
		if h == nil {
			continue
		}
		for _, st := range h.States() {
			if st.Name == name {
				return h, st
			}
		}
	}
	return nil, mcp.State{}
}

// Login logs in to a remote server, also to one of an agent's own that was connected
// to already. page is what the user has to open in a browser of
// this machine: the rest happens in the background, and the server's next state says
// how it came out. "" is nothing to open: the server is connected to.
func (m MCP) Login(ctx context.Context, name string, how mcp.Login) (page string, err error) {
	const op = "session.mcp.oauth.login"
	m.s.rt.keys.add(how.ClientSecret)
	h, st := m.s.sess.hostFor(name)
	switch {
	case h == nil && m.s.sess.hostOf() == nil:
		_, err := m.host(op, "MCP host is not available")
		return "", err
	case h == nil:
		return "", &Error{Op: op, Kind: KindNotFound, SessionID: m.s.id, Msg: "the MCP server " + name + " is not configured in session " + m.s.id}
	case !st.Config.Remote():
		return "", &Error{Op: op, Kind: KindInvalidParams, SessionID: m.s.id, Msg: "the MCP server " + name + " is not a remote server: it needs no authorization"}
	}
	page, err = h.Login(ctx, name, how)
	return page, m.refused(op, err)
}

// Probe asks a remote server whether it wants a token, or takes the one that there
// is. It changes nothing, and asks nobody.
func (m MCP) Probe(ctx context.Context, name string) mcp.Probe {
	h, _ := m.s.sess.hostFor(name)
	if h == nil {
		return mcp.Probe{Status: mcp.ProbeFailed, Error: "the MCP server " + name + " is not configured in session " + m.s.id}
	}
	return h.Probe(ctx, name)
}

// LoginChanged connects anew to a remote server whose tokens were changed elsewhere,
// by another session or process; "" is all that need one. fresh has the session get a
// token of its own, where there is a refresh token.
func (m MCP) LoginChanged(ctx context.Context, name string, fresh bool) error {
	const op = "session.mcp.oauth.authenticationStateChanged"
	h, err := m.host(op, noMCPHost)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, maxConnect)
	defer cancel()
	return m.refused(op, h.Renewed(ctx, name, fresh))
}

// Decline answers an mcp.oauth_required event by no token. It reports whether the
// answer counted.
func (m MCP) Decline(requestID string) bool {
	return m.Answer(requestID, json.RawMessage(`{"kind":"cancelled"}`))
}

// ToBackground lets model calls that wait for servers go on without them: those bring
// their tools when they come. It reports whether one waited.
func (m MCP) ToBackground() bool { return m.s.sess.servers.loads.release() }
