package host

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/transom-run/transom/mcp"
)

// authorization holds the token of a connection.
type authorization struct {
	l *link

	mu      sync.Mutex
	current string // value of the header; "" is none
	failure error  // why the newest request went without
}

// token is the Authorization header of the next request; "" is none.
func (a *authorization) token(ctx context.Context) (string, error) {
	if ask := a.l.cfg.Bearer; ask != nil {
		t, err := ask(ctx)
		if err != nil || t == "" {
			return "", err
		}
		return "Bearer " + t, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current, nil
}

// denied says why access was refused.
func (a *authorization) denied() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failure
}

// refused asks for another token, and says whether the request is to be made again.
func (a *authorization) refused(_ context.Context, res *http.Response, _ []byte, _ string, _ *string) (bool, error) {
	if res.StatusCode == http.StatusForbidden {
		return false, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failure = &mcp.ErrNoToken{Msg: fmt.Sprintf("the server answered %s: it needs authorization", res.Status)}
	return false, nil
}
