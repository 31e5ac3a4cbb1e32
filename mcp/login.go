package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Auth is the "auth" of a server's configuration: true, false, or an object.
type Auth struct {
	// Off: Transom logs in to the server in no case.
	Off bool
	// RedirectPort is the port of this machine where the browser brings the answer; 0
	// is any that is free. Authorization servers that know the client's address by
	// heart need one that stays the same.
	RedirectPort int
}

// UnmarshalJSON reads true, false, or {"redirectPort": n}.
func (a *Auth) UnmarshalJSON(raw []byte) error {
	*a = Auth{}
	switch string(bytes.TrimSpace(raw)) {
	case "true":
		return nil
	case "false":
		a.Off = true
		return nil
	}
	var in struct {
		RedirectPort int `json:"redirectPort"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return err
	}
	if in.RedirectPort < 0 || in.RedirectPort > 65535 {
		return fmt.Errorf("its redirectPort is %d: ports go from 1 to 65535, and 0 is any", in.RedirectPort)
	}
	a.RedirectPort = in.RedirectPort
	return nil
}

// MarshalJSON writes what UnmarshalJSON reads.
func (a Auth) MarshalJSON() ([]byte, error) {
	switch {
	case a.Off:
		return []byte("false"), nil
	case a.RedirectPort == 0:
		return []byte("true"), nil
	}
	return json.Marshal(map[string]int{"redirectPort": a.RedirectPort})
}

// Vault keeps what servers were authorised with, under keys of digits and small
// letters. Its methods may be called from any goroutine.
type Vault interface {
	// Load returns what is kept under key; nil is nothing.
	Load(key string) ([]byte, error)
	// Change puts in place of that what change makes of it, nil for nothing. No other
	// change of the key runs meanwhile, wherever the vault is shared.
	Change(ctx context.Context, key string, change func(old []byte) ([]byte, error)) error
}

// Login says how to log in to a server. Empty fields are as the server's
// configuration has them.
type Login struct {
	Anew         bool   // forget what there was, and begin at the beginning
	ClientName   string // of a client that registers itself, as the user reads it
	ClientID     string // a client that is registered
	ClientSecret string // its secret, held in memory only
	PublicClient *bool  // it has no secret
	GrantType    string // [AuthorizationCode] or [ClientCredentials]
	Message      string // what the user reads in the browser at the end
}

// The outcomes of a [Probe].
const (
	ProbeNoAuth        = "no-auth-required"
	ProbeNeedsAuth     = "needs-auth"
	ProbeAuthenticated = "authenticated"
	ProbeFailed        = "failed"
)

// Probe is what a server says to a first request.
type Probe struct {
	Status string
	// Reason and Challenge are of ProbeNeedsAuth: "initial", "refresh" or "upscope", and
	// the parameters of the server's WWW-Authenticate header.
	Reason    string
	Challenge map[string]string
	// Error is why it failed.
	Error string
	// StatusCode, Header and Body are the response; 0: there was none. Body is nil
	// where it is no text, too long, or a stream.
	StatusCode int
	Header     http.Header
	Body       *string
}
