package transom

import (
	"context"
	"sync"

	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/openai"
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
	own := m.own
	switch {
	case m.custom != nil:
		return m.custom, nil
	case own == nil && m.cfg.Provider != nil:
		return m.cfg.Provider, nil
	case own == nil && m.cfg.Getenv("COPILOT_PROVIDER_BASE_URL") != "":
		own = &ProviderConfig{
			BaseURL: m.cfg.Getenv("COPILOT_PROVIDER_BASE_URL"), APIKey: m.cfg.Getenv("COPILOT_PROVIDER_API_KEY"),
			BearerToken: m.cfg.Getenv("COPILOT_PROVIDER_BEARER_TOKEN"), ModelID: m.cfg.Getenv("COPILOT_MODEL"),
		}
	}
	if own == nil {
		return nil, &model.Error{Kind: model.Setup, Msg: "no model is configured"}
	}
	if req.Model == "" {
		req.Model = own.ModelID
	}
	return openai.New(openai.Config{BaseURL: own.BaseURL, APIKey: own.APIKey, BearerToken: own.BearerToken, Headers: own.Headers, WireModel: own.WireModel})
}

// defaultWindow is the size of a window that nobody gave: what most models of
// today have at least.
const defaultWindow = 128_000
