package transom

import "context"

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
func (r *Runtime) Account(ctx context.Context) Account {
	if _, err := r.Models(ctx); err != nil {
		return Account{Message: "Not authenticated"}
	}
	return Account{Authenticated: true, Type: "token", Message: "Authenticated"}
}

// ModelInfo describes a model that can be selected.
type ModelInfo struct {
	ID               string
	Name             string
	Vision           bool
	ContextWindow    int // tokens
	PromptTokens     int // of ContextWindow, for the prompt; 0 is not known
	ReasoningEfforts []string
	DefaultEffort    string
}

// Models lists what sessions without a provider of their own can use, the default
// first. Unauthenticated where there is neither an account nor a provider.
func (r *Runtime) Models(context.Context) ([]ModelInfo, error) {
	return nil, &Error{Op: "models.list", Kind: KindUnauthenticated, Msg: "Not authenticated. Please authenticate first: set GITHUB_TOKEN, or give each session a provider"}
}
