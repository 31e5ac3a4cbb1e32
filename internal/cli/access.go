package cli

import (
	"github.com/spf13/pflag"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/scripted"
)

// access is how a run gets at a model: the flags.
type access struct {
	model, wireModel string
	baseURL, keyEnv  string
	tokenEnv         string
	window           int
	script           string
}

func (a *access) register(f *pflag.FlagSet) {
	f.StringVar(&a.model, "model", "", "the model (default $COPILOT_MODEL, else the provider's first)")
	f.StringVar(&a.baseURL, "base-url", "", "a server that speaks chat completions, such as http://localhost:11434/v1\n(default $COPILOT_PROVIDER_BASE_URL)")
	f.StringVar(&a.keyEnv, "api-key-env", "", "send the API key that the variable `NAME` holds")
	f.StringVar(&a.tokenEnv, "bearer-token-env", "", "send the bearer token that the variable `NAME` holds")
	f.StringVar(&a.wireModel, "wire-model", "", "the name that the server knows the model by")
	f.IntVar(&a.window, "context-window", 0, "size of the model's window in `tokens`")
	f.StringVar(&a.script, "script", "", "play the script in `FILE` instead of asking a model")
}

// accessed is what the flags came to: at most one of the two is set; with none,
// the environment decides.
type accessed struct {
	provider *transom.ProviderConfig
	custom   model.Provider
	close    func() error
}

func (a *access) open(getenv func(string) string) (*accessed, error) {
	out := &accessed{close: func() error { return nil }}
	if a.window < 0 {
		return nil, usage("--context-window is a number of tokens, not %d", a.window)
	}
	if a.script != "" {
		if a.baseURL != "" || a.keyEnv != "" || a.tokenEnv != "" || a.wireModel != "" {
			return nil, usage("--script plays a file: no server is asked, so --base-url, --api-key-env, --bearer-token-env and --wire-model have no place beside it")
		}
		script, err := scripted.Open(a.script)
		if err != nil {
			return nil, &Error{CodeUsage, err}
		}
		out.custom = script
		return out, nil
	}
	if a.baseURL == "" && a.keyEnv == "" && a.tokenEnv == "" && a.wireModel == "" {
		return out, nil
	}
	p, err := a.provider(getenv)
	out.provider = p
	return out, err
}

// provider completes the flags by the environment. A key of the environment goes
// to the server of the environment only.
func (a *access) provider(getenv func(string) string) (*transom.ProviderConfig, error) {
	p := &transom.ProviderConfig{BaseURL: a.baseURL, WireModel: a.wireModel, ContextWindow: a.window, ModelID: a.model}
	if p.ModelID == "" {
		p.ModelID = getenv("COPILOT_MODEL")
	}
	if p.BaseURL == "" {
		p.BaseURL = getenv("COPILOT_PROVIDER_BASE_URL")
		if a.keyEnv == "" && a.tokenEnv == "" {
			p.APIKey, p.BearerToken = getenv("COPILOT_PROVIDER_API_KEY"), getenv("COPILOT_PROVIDER_BEARER_TOKEN")
		}
	}
	if p.BaseURL == "" {
		return nil, usage("which server? Give --base-url, or set COPILOT_PROVIDER_BASE_URL")
	}
	if p.ModelID == "" {
		return nil, usage("which model of %s? Give --model, or set COPILOT_MODEL", p.BaseURL)
	}
	for _, v := range []struct {
		flag, name string
		to         *string
	}{{"--api-key-env", a.keyEnv, &p.APIKey}, {"--bearer-token-env", a.tokenEnv, &p.BearerToken}} {
		if v.name == "" {
			continue
		}
		if *v.to = getenv(v.name); *v.to == "" {
			return nil, usage("%s names the variable %s, which is not set or empty", v.flag, v.name)
		}
	}
	return p, nil
}
