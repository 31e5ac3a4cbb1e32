package endpoint

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/transom-run/transom/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a server in memory.
type memory func(*http.Request) (*http.Response, error)

func (f memory) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var request = &model.Request{Model: "m", Stream: true}

func post(t *testing.T, s Server) *model.Error {
	t.Helper()
	if s.BaseURL == "" {
		s.BaseURL = "http://x"
	}
	e, err := New(s, Wire{Path: "chat/completions"})
	if err != nil {
		t.Fatal(err)
	}
	err = e.Post(t.Context(), request, nil, func(a *Answer) error {
		_, err := io.ReadAll(a.Body)
		return err
	})
	var me *model.Error
	if !errors.As(err, &me) {
		t.Fatalf("got %v", err)
	}
	return me
}

// TestShouldRetry: what the server says about another attempt goes before the
// table.
func TestShouldRetry(t *testing.T) {
	for _, tt := range []struct {
		status int
		header string
		want   bool
	}{{500, "false", false}, {400, "true", true}, {500, "", true}, {400, "maybe", false}} {
		e := post(t, Server{HTTPClient: &http.Client{Transport: memory(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: tt.status, Header: http.Header{"X-Should-Retry": {tt.header}}, Body: http.NoBody}, nil
		})}})
		if e.Retryable != tt.want {
			t.Errorf("%+v: %v", tt, e)
		}
	}
}

// TestNeverAnswers: an endpoint that takes the request and says nothing ends by
// the timeout, with words; one whose token never comes ends with its caller.
func TestNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := post(t, Server{HeaderTimeout: time.Minute, HTTPClient: &http.Client{Transport: memory(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}})
		if !e.Retryable || !strings.Contains(e.Msg, "did not begin to answer within 1m0s") {
			t.Errorf("%v", e)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		end, err := New(Server{BaseURL: "http://x", Token: func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}}, Wire{Path: "chat/completions"})
		if err != nil {
			t.Fatal(err)
		}
		err = end.Post(ctx, request, nil, nil)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "was cancelled") {
			t.Errorf("%v", err)
		}
	})
}

// TestOwnClientAndRedirects: a client of the host's own does not carry keys to
// another host either.
func TestOwnClientAndRedirects(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	client := srv.Client()
	defer client.CloseIdleConnections()
	e := post(t, Server{BaseURL: srv.URL, APIKey: "key", HTTPClient: client})
	if asked || e.Retryable || !strings.Contains(e.Msg, "leads to another host") {
		t.Errorf("asked %v: %v", asked, e)
	}
	if client.CheckRedirect != nil {
		t.Error("the host's client was changed")
	}
}

func TestRetryAfterDate(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for v, want := range map[string]time.Duration{
		"Fri, 02 Jan 2026 03:04:15 GMT": 10 * time.Second,
		"Fri, 02 Jan 2026 03:04:01 GMT": 0,
		"soon":                          0,
		"-3":                            0,
		"NaN":                           0,
		"0.5":                           500 * time.Millisecond,
	} {
		if got := retryAfter(http.Header{"Retry-After": {v}}, now); got != want {
			t.Errorf("%q: %v, want %v", v, got, want)
		}
	}
}
