package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/catalog"
	"github.com/transom-run/transom/model/replay"
	"github.com/transom-run/transom/model/scripted"
)

// access is how a run gets at a model: the flags.
type access struct {
	model, wireModel string
	baseURL, keyEnv  string
	kind, wireAPI    string
	tokenEnv         string
	window           int
	script           string
	record, replay   string
}

func (a *access) register(f *pflag.FlagSet) {
	f.StringVar(&a.model, "model", "", "the model (default $COPILOT_MODEL, else the provider's first)")
	f.StringVar(&a.baseURL, "base-url", "", "a server of models, such as http://localhost:11434/v1\n(default $COPILOT_PROVIDER_BASE_URL)")
	f.StringVar(&a.kind, "provider-type", "", "what the server of --base-url is: openai (the default), azure or anthropic")
	f.StringVar(&a.wireAPI, "wire-api", "", "what an openai or azure server speaks: completions (the default) or responses")
	f.StringVar(&a.keyEnv, "api-key-env", "", "send the API key that the variable `NAME` holds")
	f.StringVar(&a.tokenEnv, "bearer-token-env", "", "send the bearer token that the variable `NAME` holds")
	f.StringVar(&a.wireModel, "wire-model", "", "the name that the server knows the model by")
	f.IntVar(&a.window, "context-window", 0, "size of the model's window in `tokens`")
	f.StringVar(&a.script, "script", "", "play the script in `FILE` instead of asking a model")
	f.StringVar(&a.record, "record", "", "record what the model is asked and answers in `FILE`")
	f.StringVar(&a.replay, "replay", "", "play the recording in `FILE` instead of asking a model")
}

// accessed is what the flags came to: at most one of the two is set; with none,
// the environment decides.
type accessed struct {
	provider *transom.ProviderConfig
	custom   model.Provider
	model    string // of a new session; "" leaves it to the provider

	recorder *replay.Recorder
	played   *scripted.Provider // the recording that is replayed
}

// close ends what was opened, and says where it was not as it should be.
func (a *accessed) close() error {
	if a.recorder != nil {
		return a.recorder.Close()
	}
	if a.played != nil {
		if rest := a.played.Rest(); len(rest) > 0 {
			return fmt.Errorf("the replay ended before the recording did: %s never asked for, the first at %s", plural(len(rest), "answer was", "answers were"), rest[0])
		}
	}
	return nil
}

// open gets at the model. dir is the session's working directory.
func (a *access) open(getenv func(string) string, dir string) (*accessed, error) {
	if a.window < 0 {
		return nil, usage("--context-window is a number of tokens, not %d", a.window)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	server := a.baseURL != "" || a.keyEnv != "" || a.tokenEnv != "" || a.wireModel != "" || a.kind != "" || a.wireAPI != ""
	out := &accessed{model: a.model}
	switch {
	case a.replay != "" && (a.script != "" || a.record != ""):
		return nil, usage("--replay plays a recording: --script and --record have no place beside it")
	case server && (a.script != "" || a.replay != ""):
		return nil, usage("--script and --replay play a file: no server is asked, so --base-url, --provider-type, --wire-api, --api-key-env, --bearer-token-env and --wire-model have no place beside them")
	case a.script != "":
		p, err := scripted.Open(a.script)
		if err != nil {
			return nil, &Error{CodeUsage, err}
		}
		out.play(p)
	case a.replay != "":
		p, err := replay.Open(a.replay, replay.Config{WorkDir: dir})
		if err != nil {
			return nil, &Error{CodeUsage, err}
		}
		out.play(p)
		out.played = p
	case server:
		if out.provider, err = a.provider(getenv); err != nil {
			return nil, err
		}
	default:
		if err := a.anybody(getenv); err != nil {
			return nil, err
		}
	}
	if a.record != "" {
		return out, a.startRecording(out, getenv, dir)
	}
	return out, nil
}

// anybody makes sure, before a session is made, that the environment names a
// model at all.
func (a *access) anybody(getenv func(string) string) error {
	_, err := catalog.Resolve(catalog.Config{Model: a.model, Getenv: getenv})
	if err == nil {
		return nil
	}
	for _, name := range []string{"COPILOT_PROVIDER_BASE_URL", "COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"} {
		if getenv(name) != "" {
			return &Error{CodeUsage, err}
		}
	}
	return usage("which model? Give --base-url and --model, such as --base-url http://localhost:11434/v1 --model qwen3; or set COPILOT_PROVIDER_BASE_URL and COPILOT_MODEL, or GITHUB_TOKEN. 'transom run --help' says more.")
}

// play makes a file the model, and its first model the default.
func (a *accessed) play(p *scripted.Provider) {
	a.custom = p
	if models, err := p.Models(context.Background()); err == nil && len(models) > 0 && a.model == "" {
		a.model = models[0].ID
	}
}

// startRecording puts a recorder before the model that the session would have
// without one.
func (a *access) startRecording(out *accessed, getenv func(string) string, dir string) error {
	cfg := replay.Config{WorkDir: dir, Secrets: []string{getenv("COPILOT_PROVIDER_API_KEY"), getenv("COPILOT_PROVIDER_BEARER_TOKEN")}}
	if out.custom == nil {
		own := catalog.Config{Model: a.model, Getenv: getenv}
		if p := out.provider; p != nil {
			own.Provider = &catalog.Provider{
				BaseURL: p.BaseURL, APIKey: p.APIKey, BearerToken: p.BearerToken, ModelID: p.ModelID,
				WireModel: p.WireModel, MaxPromptTokens: p.ContextWindow,
			}
			cfg.Secrets = append(cfg.Secrets, p.APIKey, p.BearerToken)
		}
		choice, err := catalog.Resolve(own)
		if err != nil {
			return err
		}
		out.provider, out.custom, out.model = nil, choice.Provider, choice.Model.ID
	}
	rec, err := replay.Record(a.record, out.custom, cfg)
	if err != nil {
		return &Error{CodeUsage, err}
	}
	out.custom, out.recorder = rec, rec
	return nil
}

// provider completes the flags by the environment. A key of the environment goes
// to the server of the environment only.
func (a *access) provider(getenv func(string) string) (*transom.ProviderConfig, error) {
	p := &transom.ProviderConfig{BaseURL: a.baseURL, Type: a.kind, WireAPI: a.wireAPI, WireModel: a.wireModel, ContextWindow: a.window, ModelID: a.model}
	if p.ModelID == "" {
		p.ModelID = getenv("COPILOT_MODEL")
	}
	if p.BaseURL == "" {
		// What the environment says of a server is about the one that it names.
		p.BaseURL = getenv("COPILOT_PROVIDER_BASE_URL")
		p.Type = cmp.Or(p.Type, getenv("COPILOT_PROVIDER_TYPE"))
		p.WireAPI = cmp.Or(p.WireAPI, getenv("COPILOT_PROVIDER_WIRE_API"))
		p.WireModel = cmp.Or(p.WireModel, getenv("COPILOT_PROVIDER_WIRE_MODEL"))
		p.Transport, p.AzureAPIVersion = getenv("COPILOT_PROVIDER_TRANSPORT"), getenv("COPILOT_PROVIDER_AZURE_API_VERSION")
		if a.keyEnv == "" && a.tokenEnv == "" {
			p.APIKey, p.BearerToken = getenv("COPILOT_PROVIDER_API_KEY"), getenv("COPILOT_PROVIDER_BEARER_TOKEN")
		}
	}
	if p.BaseURL == "" {
		return nil, usage("which server? Give --base-url, or set COPILOT_PROVIDER_BASE_URL")
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
