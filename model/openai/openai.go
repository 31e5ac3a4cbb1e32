package openai

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/transom-run/transom/model"
)

// Defaults of [Config].
const (
	DefaultHeaderTimeout = 10 * time.Minute
	DefaultIdleTimeout   = 5 * time.Minute
	DefaultMaxResponse   = 64 << 20
)

// Config says where a server is and how it is talked to.
type Config struct {
	// BaseURL is what comes before /chat/completions, such as
	// https://api.openai.com/v1. A slash at its end, and /chat/completions
	// itself, are accepted; a query is kept. Required.
	BaseURL string
	// APIKey is sent as a bearer token. Empty: none is sent, as local servers
	// like it.
	APIKey string
	// BearerToken goes before APIKey.
	BearerToken string
	// Headers are added to every request and go before what this package sets.
	Headers map[string]string
	// WireModel is the model name to send, where it is not Request.Model.
	WireModel string
	// Credentials names the settings to check when the server refuses the key.
	// Empty: those of an own-key provider.
	Credentials string
	// ReasoningField is the field that carries the model's earlier reasoning
	// back, such as reasoning_content. Empty: it is not sent back; most servers
	// ignore it and some refuse it.
	ReasoningField string
	// HeaderTimeout is the longest wait for the begin of an answer, IdleTimeout
	// for more of it. 0 is 10 and 5 minutes.
	HeaderTimeout, IdleTimeout time.Duration
	// MaxResponse is the longest answer in bytes, after decompression. 0 is 64 MiB.
	MaxResponse int64
	// Decorate, where set, may set headers that depend on the request.
	Decorate func(h http.Header, req *model.Request)
	// HTTPClient is used instead of the shared one.
	HTTPClient *http.Client
	// NewID makes ids for calls that come without one. nil: call_ and 24 random
	// characters.
	NewID func() string
}

// Provider is a server.
type Provider struct {
	cfg     Config
	chat    string // URL of chat completions
	models  string // URL of the list of models
	shown   string // chat, for people: without user info or query
	host    string
	client  *http.Client
	secrets []string
}

// New checks the settings. It makes no connection.
func New(cfg Config) (*Provider, error) {
	base, err := url.Parse(strings.TrimSpace(cfg.BaseURL))
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, &model.Error{Kind: model.Setup, Msg: fmt.Sprintf(
			"The provider's base URL %s is not an http or https URL. Set it to what stands before /chat/completions, such as http://localhost:11434/v1.",
			quoteURL(cfg.BaseURL))}
	}
	base.Path = strings.TrimRight(base.Path, "/")
	base.Path = strings.TrimRight(strings.TrimSuffix(base.Path, "/chat/completions"), "/")
	base.RawPath, base.Fragment = "", ""
	p := &Provider{cfg: cfg, host: base.Host, client: cfg.HTTPClient}
	p.chat = base.JoinPath("chat", "completions").String()
	p.models = base.JoinPath("models").String()
	shown := *base
	shown.User, shown.RawQuery = nil, ""
	p.shown = shown.JoinPath("chat", "completions").String()
	if p.client == nil {
		p.client = sharedClient()
	}
	if p.cfg.HeaderTimeout == 0 {
		p.cfg.HeaderTimeout = DefaultHeaderTimeout
	}
	if p.cfg.IdleTimeout == 0 {
		p.cfg.IdleTimeout = DefaultIdleTimeout
	}
	if p.cfg.MaxResponse == 0 {
		p.cfg.MaxResponse = DefaultMaxResponse
	}
	if p.cfg.Credentials == "" {
		p.cfg.Credentials = "COPILOT_PROVIDER_API_KEY or COPILOT_PROVIDER_BEARER_TOKEN, or provider.apiKey or provider.bearerToken of the session"
	}
	if p.cfg.NewID == nil {
		p.cfg.NewID = randomID
	}
	p.secrets = secretsOf(&cfg, base)
	return p, nil
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

// sharedClient is one pool of connections for all providers of the process.
var sharedClient = sync.OnceValue(func() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 16
	t.MaxIdleConns = 64
	t.IdleConnTimeout = 90 * time.Second
	return &http.Client{Transport: t, CheckRedirect: sameHost}
})

// CloseIdleConnections closes the shared pool's connections that nobody uses.
func CloseIdleConnections() { sharedClient().CloseIdleConnections() }

// SharedClient is the HTTP client that all providers without one of their own
// use. It follows redirects on the same host only.
func SharedClient() *http.Client { return sharedClient() }

// errRedirect says that a redirect was not followed.
var errRedirect = errors.New("a redirect that is not followed")

// sameHost refuses redirects to other hosts: they would be sent the headers of
// the provider, keys among them.
func sameHost(req *http.Request, via []*http.Request) error {
	if len(via) >= 5 {
		return fmt.Errorf("%w: more than 5 in a row", errRedirect)
	}
	if req.URL.Host != via[0].URL.Host || (via[0].URL.Scheme == "https" && req.URL.Scheme != "https") {
		return fmt.Errorf("%w: it leads to another host (%s); set the base URL to it, if it is right", errRedirect, req.URL.Host)
	}
	return nil
}

func randomID() string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	b := []byte("call_000000000000000000000000")
	for i := len("call_"); i < len(b); i++ {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b)
}

// Endpoint is the URL that is asked, without user info and query.
func (p *Provider) Endpoint() string { return p.shown }

// Stream makes one attempt; see [model.Provider].
func (p *Provider) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		a := attempt{p: p, req: req, yield: yield}
		if err := a.run(ctx); err != nil && !a.stopped {
			yield(model.Chunk{}, err)
		}
	}
}

func (p *Provider) setHeaders(h http.Header, req *model.Request) {
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "transom")
	switch {
	case p.cfg.BearerToken != "":
		h.Set("Authorization", "Bearer "+p.cfg.BearerToken)
	case p.cfg.APIKey != "":
		h.Set("Authorization", "Bearer "+p.cfg.APIKey)
	}
	if p.cfg.Decorate != nil {
		p.cfg.Decorate(h, req)
	}
	for name, value := range p.cfg.Headers {
		h.Set(name, value)
	}
	if req != nil {
		for name, value := range req.Headers {
			h.Set(name, value)
		}
	}
}
