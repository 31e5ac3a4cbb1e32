package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// plain is an error without what was sent or answered: servers repeat codes, tokens
// and secrets in what they answer.
func (k *Keeper) plain(err error) error {
	var said *oauth2.RetrieveError
	var address *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("there was no answer in time")
	case errors.As(err, &said) && said.ErrorCode != "":
		return errors.New("it answered " + word(said.ErrorCode))
	case errors.As(err, &said) && said.Response != nil:
		return fmt.Errorf("it answered %s, which is no OAuth error", said.Response.Status)
	case errors.As(err, &said):
		return errors.New("its answer is not understood")
	case errors.As(err, &address):
		return fmt.Errorf("%s could not be asked: %s", place(address.URL), short(k.cfg.Redact(address.Err.Error())))
	}
	return errors.New(short(k.cfg.Redact(err.Error())))
}

// step says which step of a login failed, and what to do.
func (k *Keeper) step(err error, status int) error {
	var registration *oauthex.ClientRegistrationError
	var said *oauth2.RetrieveError
	const known = "give a client that is registered there, by oauthClientId in the server's configuration, or clientId with session.mcp.oauth.login"
	switch text := err.Error(); {
	case errors.As(err, &registration):
		return fmt.Errorf("the authorization server refused to register a client (%s): %s", word(registration.ErrorCode), known)
	case strings.HasPrefix(text, "failed to register client"):
		return fmt.Errorf("the authorization server registered no client, by an answer with the status %d: %s", status, known)
	case strings.HasPrefix(text, "no configured client registration"):
		return fmt.Errorf("the authorization server registers no clients: %s", known)
	case strings.HasPrefix(text, "failed to get authorization server metadata"):
		_, why, _ := strings.Cut(text, ": ")
		return fmt.Errorf("the metadata of the authorization server is of no use: %s. Tell who runs the server, or have the host give a token", short(k.cfg.Redact(why)))
	case errors.As(err, &said):
		return fmt.Errorf("the authorization server gave no token for the user's approval: %w. Log in anew", k.plain(err))
	case strings.HasPrefix(text, "token exchange failed"):
		return fmt.Errorf("the authorization server could not be asked for a token: %w. Log in anew", k.plain(err))
	}
	return fmt.Errorf("%w. Nothing was kept: log in anew, or have the host give a token", k.plain(err))
}

// place is an address without what may be secret in it.
func place(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// word is what an authorization server calls an error, where RFC 6749, RFC 7591,
// RFC 8707 or OpenID Connect know it: it may be anything else.
func word(code string) string {
	switch code {
	case "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
		"access_denied", "unsupported_response_type", "server_error", "temporarily_unavailable", "invalid_target",
		"invalid_redirect_uri", "invalid_client_metadata", "invalid_software_statement", "unapproved_software_statement",
		"interaction_required", "login_required", "account_selection_required", "consent_required":
		return code
	}
	return "an error that OAuth does not know"
}

// short is one line of a text, without end.
func short(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "…"
	}
	return text
}

func joined(scopes []string) string { return strings.Join(scopes, " ") }
