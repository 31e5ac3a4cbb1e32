package oauth

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/transom-run/transom/mcp"
)

// record is what is kept of one server and client.
type record struct {
	Server   string `json:"server"`
	ClientID string `json:"clientId"`
	// ClientSecret is one that the issuer gave at a registration. A host's own is held
	// in memory only.
	ClientSecret string `json:"clientSecret,omitempty"`
	// Redirect is the address that the client registered itself with; "" where it did
	// not.
	Redirect  string   `json:"redirect,omitempty"`
	Grant     string   `json:"grant"`
	TokenURL  string   `json:"tokenUrl"`
	AuthStyle int      `json:"authStyle,omitempty"`
	Resource  string   `json:"resource"`
	Scopes    []string `json:"scopes,omitempty"`

	Access  string    `json:"accessToken,omitempty"`
	Type    string    `json:"tokenType,omitempty"`
	Refresh string    `json:"refreshToken,omitempty"`
	Got     time.Time `json:"got,omitzero"`
	Ends    time.Time `json:"ends,omitzero"` // zero: it is not known
}

// keyOf is the key of what a server's configuration leads to.
func keyOf(s mcp.Server) string {
	sum := sha256.Sum256([]byte(canonical(s.URL) + "\x00" + s.OAuthClientID + "\x00" + s.OAuthClientSecret + "\x00" + grantOf(s)))
	return hex.EncodeToString(sum[:])
}

// canonical is an address in the one form by which servers are told apart.
func canonical(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.Scheme, u.Host, u.Fragment, u.RawFragment = strings.ToLower(u.Scheme), strings.ToLower(u.Host), "", ""
	return u.String()
}

// grantOf is the grant that a configuration asks for.
func grantOf(s mcp.Server) string {
	if s.OAuthGrantType == mcp.ClientCredentials {
		return mcp.ClientCredentials
	}
	return mcp.AuthorizationCode
}

// parse reads a record; nil where there is none of this server.
func parse(raw []byte, s mcp.Server) *record {
	var r record
	if len(raw) == 0 || json.Unmarshal(raw, &r) != nil || r.Server != canonical(s.URL) {
		return nil
	}
	return &r
}

// header is the Authorization header by the record; "" where it has no token.
func (r *record) header() string {
	if r == nil || r.Access == "" {
		return ""
	}
	t := oauth2.Token{TokenType: r.Type}
	return t.Type() + " " + r.Access
}

// early is how long before its end a token is renewed: a request that is on its way
// when it ends would be refused.
func (r *record) early() time.Duration { return min(time.Minute, r.Ends.Sub(r.Got)/10) }

// fresh reports whether the token will be good for a while.
func (r *record) fresh(now time.Time) bool {
	return r.Access != "" && (r.Ends.IsZero() || now.Before(r.Ends.Add(-r.early())))
}

// ended reports whether the token is known to have ended.
func (r *record) ended(now time.Time) bool { return !r.Ends.IsZero() && now.After(r.Ends) }

// renewable reports whether a new token can be got without a user.
func (r *record) renewable() bool { return r.Refresh != "" || r.Grant == mcp.ClientCredentials }

// take takes a token. One that comes without a refresh token leaves the one there
// was.
func (r *record) take(t *oauth2.Token, now time.Time) {
	r.Access, r.Type, r.Got, r.Ends = t.AccessToken, t.TokenType, now, t.Expiry
	if t.RefreshToken != "" {
		r.Refresh = t.RefreshToken
	}
	if scope, ok := t.Extra("scope").(string); ok {
		r.Scopes = strings.Fields(scope)
	}
}

// drop forgets the tokens, and keeps the client.
func (r *record) drop() {
	r.Access, r.Type, r.Refresh, r.Got, r.Ends = "", "", "", time.Time{}, time.Time{}
}

// secrets are what nobody may be shown.
func (r *record) secrets() []string { return []string{r.Access, r.Refresh, r.ClientSecret} }
