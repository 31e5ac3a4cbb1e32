package oauth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/transom-run/transom/mcp"
)

// discover finds out where the tokens of a server are given, for a client without a
// browser. The SDK has the same for one with a browser in its handler; its handler
// for this grant names no resource.
func (k *Keeper) discover(ctx context.Context, s mcp.Server, r *record, challenge []string) error {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	if err := safe(s.URL); err != nil {
		return err
	}
	client, release := k.requests(ctx, s.URL)
	defer release()
	said, _ := oauthex.ParseWWWAuthenticate(challenge) // one that is not understood says nothing
	metadata, wanted := "", []string(nil)
	for _, c := range said {
		if c.Scheme == "bearer" {
			metadata, wanted = c.Params["resource_metadata"], strings.Fields(c.Params["scope"])
		}
	}
	issuer, resource, offered := root(s.URL), s.URL, []string(nil)
	var why error
	for _, at := range wellKnown(s.URL, metadata) {
		doc, err := oauthex.GetProtectedResourceMetadata(ctx, at.url, at.resource, client)
		if err != nil {
			why = errors.Join(why, err)
			continue
		}
		if len(doc.AuthorizationServers) == 0 {
			return fmt.Errorf("the server's metadata at %s names no authorization server", at.url)
		}
		issuer, resource, offered, why = doc.AuthorizationServers[0], doc.Resource, doc.ScopesSupported, nil
		break
	}
	meta, err := auth.GetAuthServerMetadata(ctx, issuer, client)
	if err != nil {
		return fmt.Errorf("the metadata of the authorization server %s is of no use: %w", issuer, k.plain(err))
	}
	if meta == nil {
		return fmt.Errorf("the authorization server %s has no metadata%s", issuer, k.because(why))
	}
	if meta.TokenEndpoint == "" {
		return fmt.Errorf("the metadata of the authorization server %s is of no use: %w", issuer, errNoTokens)
	}
	r.TokenURL, r.Resource = meta.TokenEndpoint, resource
	if len(wanted) == 0 {
		wanted = offered
	}
	r.Scopes = union(r.Scopes, wanted)
	return nil
}

// union is scopes in their order, and those of more that are not among them.
func union(scopes, more []string) []string {
	out := slices.Clone(scopes)
	for _, scope := range more {
		if !slices.Contains(out, scope) {
			out = append(out, scope)
		}
	}
	return out
}

func (k *Keeper) because(err error) string {
	if err == nil {
		return ""
	}
	return ", and the server names no other: " + k.plain(err).Error()
}

type document struct{ url, resource string }

// wellKnown is where a server's metadata may be, and which resource each place is of.
func wellKnown(server, named string) []document {
	var out []document
	if named != "" {
		out = append(out, document{named, server})
	}
	u, err := url.Parse(server)
	if err != nil {
		return out
	}
	at := *u
	at.Path = "/.well-known/oauth-protected-resource/" + strings.TrimLeft(u.Path, "/")
	out = append(out, document{at.String(), server})
	at.Path, u.Path = "/.well-known/oauth-protected-resource", ""
	return append(out, document{at.String(), u.String()})
}

// root is the origin of an address.
func root(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Scheme + "://" + u.Host
}

// safe reports, as an error, that tokens for a server would cross a network where
// they can be read.
func safe(server string) error {
	u, err := url.Parse(server)
	if err != nil {
		return errors.New("its address cannot be read")
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if u.Scheme == "https" || u.Hostname() == "localhost" || err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("its address is %s, and tokens are not sent unencrypted: use https", root(server))
}

// requests makes those for one login or token. They follow no redirect to
// another origin: a code, a secret and what is believed of an issuer stay where they
// are meant to.
func (k *Keeper) requests(ctx context.Context, server string) (c *http.Client, release func()) {
	c = &http.Client{Timeout: stepTime, CheckRedirect: func(to *http.Request, via []*http.Request) error {
		from := via[0].URL
		if to.URL.Scheme != from.Scheme || to.URL.Host != from.Host {
			return fmt.Errorf("%s redirects to another place, %s", root(from.String()), root(to.URL.String()))
		}
		if len(via) >= 5 {
			return fmt.Errorf("%s redirects without end", root(from.String()))
		}
		return nil
	}}
	if k.cfg.Transport != nil {
		c.Transport = &patient{k.cfg.Transport}
		return c, func() {}
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	if guarded(ctx, t, server) {
		t.DialContext = (&net.Dialer{Timeout: stepTime, KeepAlive: 30 * time.Second, Control: public}).DialContext
	}
	c.Transport = &patient{t}
	return c, t.CloseIdleConnections
}

// guarded reports whether connections are to be kept away from private addresses. A
// server that is itself at one may well have its authorization server beside it, and
// through a proxy the proxy decides.
func guarded(ctx context.Context, t *http.Transport, server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return true
	}
	if t.Proxy != nil {
		if via, err := t.Proxy(&http.Request{URL: u}); err == nil && via != nil {
			return false
		}
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	return err != nil || !slices.ContainsFunc(ips, private)
}

// public refuses connections to addresses of this network or machine.
func public(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || private(at.Addr()) {
		return fmt.Errorf("%s is a private address, and the server is a public one", address)
	}
	return nil
}

// private reports whether an address is of this machine or network, the address space
// that providers use among themselves (RFC 6598) included.
func private(ip netip.Addr) bool {
	ip = ip.Unmap()
	shared := netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64, 0, 0}), 10)
	return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast() || shared.Contains(ip)
}
