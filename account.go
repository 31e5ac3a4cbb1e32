package transom

import (
	"context"

	"github.com/transom-run/transom/model"
)

// Account is the one whose models sessions use that bring no account and no
// provider of their own.
type Account struct {
	Authenticated bool
	Type          string // "token", "env" or "api-key"; "" where there is none
	Host          string // such as https://github.com
	Login         string
	Message       string // for people
}

// Account describes the runtime's account. Authenticated is true only where
// [Runtime.Models] can answer too.
func (r *Runtime) Account(context.Context) Account {
	if _, ok := r.cfg.Provider.(model.Lister); ok {
		return Account{Authenticated: true, Type: "api-key", Message: "Using the runtime's own model provider"}
	}
	return Account{Message: "Not authenticated"}
}

// Models lists what sessions without a provider of their own can use, the default
// first. Unauthenticated where there is neither an account nor a provider.
func (r *Runtime) Models(ctx context.Context) ([]model.Info, error) {
	const op = "models.list"
	if l, ok := r.cfg.Provider.(model.Lister); ok {
		models, err := l.Models(ctx)
		return models, wrap(op, "", err)
	}
	return nil, &Error{Op: op, Kind: KindUnauthenticated, Msg: "Not authenticated. Please authenticate first: set GITHUB_TOKEN, or give each session a provider"}
}
