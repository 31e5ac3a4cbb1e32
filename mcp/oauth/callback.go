package oauth

import (
	"context"
	"crypto/subtle"
	"fmt"
	"html"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// refusal is what a user, or the authorization server in their name, answered.
type refusal struct{ msg string }

func (r *refusal) Error() string { return r.msg }

// arrival is what the browser brought: a result or a refusal.
type arrival struct {
	result  *auth.AuthorizationResult
	refused *refusal
}

// callback is the page of this machine to which the browser comes back. It takes one
// answer, and only one with the state of the login: what else comes here is turned
// away and changes nothing.
type callback struct {
	url     string
	message string
	server  *http.Server
	served  chan struct{} // closed when the listener is closed
	answer  chan arrival  // one at most

	mu    sync.Mutex
	state string // "": nothing is expected
	over  chan struct{}
	err   error // set before over is closed
}

// newCallback serves at a listener, which is closed with it.
func newCallback(at net.Listener, message string) *callback {
	c := &callback{
		url: "http://" + at.Addr().String() + "/", message: message,
		served: make(chan struct{}), answer: make(chan arrival, 1), over: make(chan struct{}),
	}
	if message == "" {
		c.message = "You can close this window and go on where you were."
	}
	c.server = &http.Server{
		Handler: http.HandlerFunc(c.come), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 2 * stepTime,
		MaxHeaderBytes: 64 << 10,
	}
	c.server.SetKeepAlivesEnabled(false)
	go func() {
		defer close(c.served)
		_ = c.server.Serve(at)
	}()
	return c
}

// expect says which state the answer will have.
func (c *callback) expect(state string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = state
}

// taken reports whether a state is the expected one, which nothing is from then on.
func (c *callback) taken(state string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == "" || subtle.ConstantTimeCompare([]byte(state), []byte(c.state)) != 1 {
		return false
	}
	c.state = ""
	return true
}

// come serves the browser. The page says how the login came out, so it waits for it.
func (c *callback) come(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch {
	case r.Method != http.MethodGet || r.URL.Path != "/":
		page(w, http.StatusNotFound, "Nothing is here", "This address waits for the end of a login.")
		return
	case !c.taken(q.Get("state")):
		page(w, http.StatusBadRequest, "Not the login that is waited for", "Begin the login anew, and open the page that it names.")
		return
	}
	if code := q.Get("error"); code != "" {
		c.answer <- arrival{refused: &refusal{fmt.Sprintf("the authorization server did not give access: %s. Log in anew to be asked again", word(code))}}
	} else {
		c.answer <- arrival{result: &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}}
	}
	select {
	case <-c.over:
	case <-r.Context().Done():
		return
	}
	if c.err != nil {
		page(w, http.StatusOK, "The login failed", c.err.Error())
		return
	}
	page(w, http.StatusOK, "Logged in", c.message)
}

// close ends the page, once it has said how the login came out.
func (c *callback) close(err error) {
	c.err = err
	close(c.over)
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	if c.server.Shutdown(ctx) != nil {
		c.server.Close()
	}
	<-c.served
}

func page(w http.ResponseWriter, status int, title, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<!doctype html><meta charset="utf-8"><title>%[1]s</title>
<body style="font-family:system-ui;margin:20vh auto;max-width:32em;text-align:center"><h1>%[1]s</h1><p>%[2]s</p>
`, html.EscapeString(title), html.EscapeString(text))
}
