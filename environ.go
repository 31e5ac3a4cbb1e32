package transom

import (
	"os"
	"slices"
	"strings"
)

// secretNames are variables that hold what a child process must not see, whatever
// their value.
var secretNames = []string{
	"COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BEARER_TOKEN", "COPILOT_GITHUB_TOKEN", "COPILOT_CONNECTION_TOKEN",
	"COPILOT_SDK_AUTH_TOKEN", "GH_TOKEN", "GITHUB_TOKEN",
	"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS", "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
}

// hiddenVariable reports whether child processes never see a variable.
func hiddenVariable(name string) bool { return slices.Contains(secretNames, name) }

// Environ is the environment for programs that run beside sessions: that of this
// process without the keys and tokens that the runtime was given.
func (r *Runtime) Environ() []string { return r.environ() }

// environ is the environment of child processes: without what the runtime was
// entrusted with, by name or by value.
func (r *Runtime) environ() []string {
	secrets := r.keys.list()
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, value, _ := strings.Cut(kv, "=")
		return hiddenVariable(name) || slices.ContainsFunc(secrets, func(s string) bool { return strings.Contains(value, s) })
	})
}
