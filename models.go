package transom

import (
	"context"
	"sync"

	"github.com/transom-run/transom/model"
)

// models is a session's access to a model. It may be replaced while the session
// lives; the next request uses the new one.
type models struct {
	cfg Config

	mu     sync.Mutex
	own    *ProviderConfig
	custom model.Provider
	token  string
}

func newModels(cfg Config, own *ProviderConfig, custom model.Provider, token string) *models {
	return &models{cfg: cfg, own: own, custom: custom, token: token}
}

// replace takes what a resume brings; nil keeps what was there.
func (m *models) replace(own *ProviderConfig, custom model.Provider, token *string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if own != nil || custom != nil {
		m.own, m.custom = own, custom
	}
	if token != nil {
		m.token = *token
	}
}

// selected is the model that a session begins with; "" leaves the choice to the
// provider.
func (m *models) selected(model string) string {
	if model == "" && m.own != nil {
		model = m.own.ModelID
	}
	if model == "" {
		model = m.cfg.Model
	}
	return model
}

// window is the size of the window in tokens.
func (m *models) window() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.own != nil && m.own.ContextWindow > 0 {
		return m.own.ContextWindow
	}
	if m.cfg.ContextWindow > 0 {
		return m.cfg.ContextWindow
	}
	return defaultWindow
}

// provider resolves who answers a request.
func (m *models) provider(ctx context.Context, req *model.Request) (model.Provider, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.custom != nil {
		return m.custom, nil
	}
	if m.cfg.Provider != nil && m.own == nil {
		return m.cfg.Provider, nil
	}
	return nil, &model.Error{Kind: model.Setup, Msg: "no model is configured"}
}

// defaultWindow is the size of a window that nobody gave: what most models of
// today have at least.
const defaultWindow = 128_000
