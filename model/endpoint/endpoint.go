// Package endpoint is the way to a model's server: its address, who asks, and
// one request with its answer. What is said on the way is a wire's business.
//
//	e, err := endpoint.New(server, endpoint.Wire{Name: "chat completions", Path: "chat/completions"})
//	err = e.Post(ctx, req, body, func(a *endpoint.Answer) error { … read a.Body … })
//
//	Server ─▶ Endpoint.Post ─▶ address, token, headers ─▶ HTTP ─▶ Answer ─▶ the wire's reader
//	                                                       └─▶ status, timeouts, cut connection ─▶ *model.Error
//
// # Ownership
//
// An [Endpoint] holds settings and no connection: connections live in one shared
// pool, so that an idle session costs neither memory nor a goroutine. It may be
// used by any number of goroutines.
//
// # Errors
//
// Every failure is a *model.Error with endpoint, status and what to check. Keys,
// tokens and header values of the Server are cut out of what a server says.
package endpoint

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/transom-run/transom/model"
)

// Defaults of [Server].
const (
	DefaultHeaderTimeout = 10 * time.Minute
	DefaultIdleTimeout   = 5 * time.Minute
	DefaultMaxResponse   = 64 << 20
)

// Server says where a server is and how it is talked to.
type Server struct {
	// BaseURL is what comes before the path of the wire, such as
	// https://api.openai.com/v1. A slash at its end, and the path itself, are
	// accepted; a query is kept. Required.
	BaseURL string
	// Azure, where set, says that the server is an Azure OpenAI resource.
	Azure *Azure
	// APIKey is the server's key, sent as the wire has it: as a bearer token, or
	// in a header of its own. Empty: none is sent, as local servers like it.
	APIKey string
	// BearerToken is sent as a bearer token and goes before APIKey.
	BearerToken string
	// Token, where set, is asked for a bearer token before every request, and goes
	// before both. What it returns is never kept.
	Token func(ctx context.Context) (string, error)
	// Headers are added to every request and go before what this package sets.
	Headers map[string]string
	// WireModel is the model name to send, where it is not Request.Model.
	WireModel string
	// MaxOutput bounds answers, in tokens. 0 leaves it to the server; a wire that
	// must name a bound has a default.
	MaxOutput int
	// Credentials names the settings to check when the server refuses the key.
	// Empty: those of an own-key provider.
	Credentials string
	// HeaderTimeout is the longest wait for the begin of an answer, IdleTimeout
	// for more of it. 0 is 10 and 5 minutes.
	HeaderTimeout, IdleTimeout time.Duration
	// MaxResponse is the longest answer in bytes, after decompression. 0 is 64 MiB.
	MaxResponse int64
	// Decorate, where set, may set headers that depend on the request; req is nil
	// when models are listed.
	Decorate func(h http.Header, req *model.Request)
	// HTTPClient is used instead of the shared one. Its transport may be anything,
	// such as a host that makes the requests itself: [Asked] tells it for whom.
	HTTPClient *http.Client
	// NewID makes ids for calls that come without one. nil: call_ and 24 random
	// characters.
	NewID func() string
}

// Wire is what differs between the wires.
type Wire struct {
	Name string // for people: "chat completions"
	Path string // after the base URL, without a slash before it: "chat/completions"
	// Base is the end of a base URL that may be left out or given: "v1" for a path
	// that begins with v1/.
	Base string
	// KeyHeader is the header for Server.APIKey; empty: Authorization.
	KeyHeader string
	// Header is set on every request.
	Header map[string]string
	// Hint ends the error for an answer that is a web page.
	Hint string
}

// Endpoint is where requests of one wire are posted.
type Endpoint struct {
	cfg     Server
	wire    Wire
	base    *url.URL
	plain   address // of a server whose address does not depend on the model
	models  string  // URL of the list of models
	client  *http.Client
	secrets []string
}

// address is a URL, and the same for people: without user info and query.
type address struct{ url, shown string }

// New checks the settings. It makes no connection.
func New(s Server, w Wire) (*Endpoint, error) {
	base, err := url.Parse(strings.TrimSpace(s.BaseURL))
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, &model.Error{Kind: model.Setup, Msg: fmt.Sprintf(
			"The provider's base URL %s is not an http or https URL. Set it to what stands before /%s, such as %s.",
			quoteURL(s.BaseURL), w.Path, exampleURL(&s))}
	}
	e := &Endpoint{cfg: s, wire: w, client: guarded(s.HTTPClient)}
	e.cfg.fill()
	base.RawPath, base.Fragment = "", ""
	e.secrets = secretsOf(&s, base)
	e.base = base
	if s.Azure != nil {
		e.openAzure()
		return e, nil
	}
	base.Path = trimPath(base.Path, w.Path)
	if w.Base != "" {
		base.Path = trimPath(base.Path, w.Base)
	}
	e.plain = addressOf(base, w.Path)
	list := "models"
	if w.Base != "" {
		list = w.Base + "/models"
	}
	e.models = base.JoinPath(list).String()
	return e, nil
}

func (s *Server) fill() {
	if s.HeaderTimeout == 0 {
		s.HeaderTimeout = DefaultHeaderTimeout
	}
	if s.IdleTimeout == 0 {
		s.IdleTimeout = DefaultIdleTimeout
	}
	if s.MaxResponse == 0 {
		s.MaxResponse = DefaultMaxResponse
	}
	if s.Credentials == "" {
		s.Credentials = "COPILOT_PROVIDER_API_KEY or COPILOT_PROVIDER_BEARER_TOKEN, or provider.apiKey or provider.bearerToken of the session"
	}
	if s.NewID == nil {
		s.NewID = randomID
	}
}

func exampleURL(s *Server) string {
	if s.Azure != nil {
		return "https://my-resource.openai.azure.com"
	}
	return "http://localhost:11434/v1"
}

// trimPath takes an end off a path, with the slashes around it.
func trimPath(path, end string) string {
	path = strings.TrimRight(path, "/")
	return strings.TrimRight(strings.TrimSuffix(path, "/"+end), "/")
}

func addressOf(base *url.URL, path string) address {
	shown := *base
	shown.User, shown.RawQuery = nil, ""
	return address{base.JoinPath(path).String(), shown.JoinPath(path).String()}
}

// quoteURL shows a URL that could not be used, without what may be a password.
func quoteURL(s string) string {
	if at := strings.LastIndexByte(s, '@'); at >= 0 {
		s = "…" + s[at:]
	}
	if q := strings.IndexByte(s, '?'); q >= 0 {
		s = s[:q]
	}
	return fmt.Sprintf("%q", s)
}

func randomID() string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	b := []byte("call_000000000000000000000000")
	for i := len("call_"); i < len(b); i++ {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b)
}

// Settings are those of New, with the defaults filled in.
func (e *Endpoint) Settings() *Server { return &e.cfg }

// Model is the name to send for a request.
func (e *Endpoint) Model(req *model.Request) string {
	if e.cfg.WireModel != "" {
		return e.cfg.WireModel
	}
	return req.Model
}

// URL is the address that a request for the model goes to, without user info and
// query.
func (e *Endpoint) URL(model string) string { return e.address(model).shown }

func (e *Endpoint) address(model string) address {
	if e.cfg.Azure != nil && e.plain.url == "" {
		return e.deployment(model)
	}
	return e.plain
}
