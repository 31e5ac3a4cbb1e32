package remote

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/transom-run/transom/internal/lazy"
)

// Peer is another server.
type Peer struct {
	// Name is what hosts call it: letters, digits, '.', '_' and '-'.
	Name string
	// Address is where it listens, HOST:PORT.
	Address string
	// Token is what it asks of its clients; "" where it asks nothing.
	Token string
	// TokenEnv is the environment variable that Token came from; "" where it came
	// from elsewhere.
	TokenEnv string
	// Dial opens a connection to it; nil dials Address over TCP.
	Dial func(ctx context.Context) (io.ReadWriteCloser, error)
}

var peerName = lazy.Regexp{Expr: `^[A-Za-z0-9._-]+$`}

// ParsePeer reads NAME=tcp://HOST:PORT, optionally followed by ?token-env=VAR or
// ?token-file=PATH: where the peer's token is. A token itself never stands in the
// text, which others on the machine can read in a list of processes. getenv and
// read are os.Getenv and os.ReadFile.
func ParsePeer(text string, getenv func(string) string, read func(string) ([]byte, error)) (Peer, error) {
	const form = "a peer is written NAME=tcp://HOST:PORT, with ?token-env=VARIABLE or ?token-file=PATH where it asks for a token"
	name, rest, ok := strings.Cut(text, "=")
	if !ok || !peerName.Get().MatchString(name) {
		return Peer{}, fmt.Errorf("a peer needs a name of letters, digits, '.', '_' and '-': %s", form)
	}
	u, err := url.Parse(rest)
	if err != nil || u.User != nil { // an error would quote what may be a token
		return Peer{}, fmt.Errorf("peer %s: the address is no URL that can be used: %s", name, form)
	}
	if u.Scheme != "tcp" || u.Port() == "" || u.Path != "" && u.Path != "/" || u.Fragment != "" {
		return Peer{}, fmt.Errorf("peer %s: %s", name, form)
	}
	host := u.Hostname()
	if host == "" {
		host = "127.0.0.1"
	}
	p := Peer{Name: name, Address: net.JoinHostPort(host, u.Port())}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Peer{}, fmt.Errorf("peer %s: what follows the ? cannot be read: %s", name, form)
	}
	for key, values := range query {
		switch key {
		case "token-env":
			p.TokenEnv = values[0]
			if p.Token = getenv(p.TokenEnv); p.Token == "" {
				return Peer{}, fmt.Errorf("peer %s: token-env names %s, which is not set", name, p.TokenEnv)
			}
		case "token-file":
			raw, err := read(values[0])
			if err != nil {
				return Peer{}, fmt.Errorf("peer %s: the token file cannot be read: %w", name, err)
			}
			if p.Token = strings.TrimSpace(string(raw)); p.Token == "" {
				return Peer{}, fmt.Errorf("peer %s: the token file %s is empty", name, values[0])
			}
		default:
			return Peer{}, fmt.Errorf("peer %s: %q is not known: %s", name, key, form)
		}
	}
	if len(query) > 1 {
		return Peer{}, fmt.Errorf("peer %s: give token-env or token-file, not both", name)
	}
	return p, nil
}

// A peer that is gone without a word is noticed within half a minute.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

func (p *Peer) dial(ctx context.Context) (io.ReadWriteCloser, error) {
	if p.Dial != nil {
		return p.Dial(ctx)
	}
	d := net.Dialer{KeepAliveConfig: keepAlive}
	return d.DialContext(ctx, "tcp", p.Address)
}
