package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/pflag"

	"github.com/transom-run/transom/internal/cli"
	"github.com/transom-run/transom/remote"
)

// options are the flags of the server. All SDKs launch it with these.
type options struct {
	headless     bool
	stdio        bool
	port         int
	host         string
	logLevel     string
	authTokenEnv string
	noAutoLogin  bool
	noAutoUpdate bool
	idleTimeout  int
	remote       bool
	yolo         bool
	requireToken bool
	peers        []string
	plugins      []string

	// serving is set once the server runs: what fails later is no failed start.
	serving bool
}

func (o *options) register(f *pflag.FlagSet) {
	f.BoolVar(&o.headless, "headless", false, "serve clients of the Copilot SDKs")
	f.BoolVar(&o.headless, "server", false, "the same as --headless")
	f.BoolVar(&o.stdio, "stdio", false, "serve one client on stdin and stdout, instead of a TCP port")
	f.IntVar(&o.port, "port", 0, "TCP `port` to serve on; 0 takes a free one")
	f.StringVar(&o.host, "host", "127.0.0.1", "`address` to serve on; others than loopback need COPILOT_CONNECTION_TOKEN")
	f.StringVar(&o.logLevel, "log-level", "error", "what to log on stderr: none, error, warning, info, debug or all")
	f.StringVar(&o.authTokenEnv, "auth-token-env", "", "`variable` that holds the GitHub token of sessions that bring none")
	f.BoolVar(&o.noAutoLogin, "no-auto-login", false, "do not look for a GitHub token in COPILOT_GITHUB_TOKEN, GH_TOKEN and GITHUB_TOKEN")
	f.BoolVar(&o.noAutoUpdate, "no-auto-update", false, "accepted for the SDKs' sake: transom never updates itself")
	f.IntVar(&o.idleTimeout, "session-idle-timeout", 0, "accepted; sessions are never ended for being idle, `seconds` has no effect")
	f.BoolVar(&o.remote, "remote", false, "accepted; there is no hosted service that sessions could be shown on")
	f.BoolVar(&o.yolo, "yolo", false, "approve every tool call of every session without asking")
	f.BoolVar(&o.requireToken, "require-token", false, "refuse to serve a port without COPILOT_CONNECTION_TOKEN, on loopback too")
	f.StringArrayVar(&o.peers, "peer", nil, "another `server`, to whose sessions clients may attach: NAME=tcp://HOST:PORT, with ?token-env=VARIABLE or ?token-file=PATH where it asks for a token; may be repeated")
	f.StringArrayVar(&o.plugins, "plugin-dir", nil, "`directory` of a plugin that every session has; may be repeated")
	for _, name := range []string{"no-auto-update", "session-idle-timeout", "remote"} {
		if err := f.MarkHidden(name); err != nil {
			panic(err) // a name misspelt above
		}
	}
}

// servesNothing is the error of flags of the server on a command line that does
// not ask for one; nil where there are none.
func servesNothing(f *pflag.FlagSet) error {
	var given []string
	f.Visit(func(flag *pflag.Flag) { given = append(given, "--"+flag.Name) })
	if len(given) == 0 {
		return nil
	}
	return misuse("without --headless nothing is served, so there is no use for %s: add --headless to start a server", strings.Join(given, ", "))
}

// launchedAsServer reports whether the arguments ask for a server, also where
// they could not be parsed.
func launchedAsServer(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		return a == "--headless" || a == "--server" || a == "--stdio"
	})
}

// servesOnly reports whether the arguments are those of a server and nothing else,
// as the SDKs launch it: then there is no need for the commands, which take longer to
// make than to serve the first request.
func servesOnly(args []string) bool {
	return launchedAsServer(args) && strings.HasPrefix(args[0], "-") && !slices.Contains(args, "--help") && !slices.Contains(args, "-h")
}

// misuse is the error of flags that cannot be obeyed.
func misuse(format string, args ...any) error {
	return &cli.Error{Code: cli.CodeUsage, Err: fmt.Errorf(format, args...)}
}

// logger writes text to stderr from a level on.
func (o *options) logger(stderr io.Writer) (*slog.Logger, error) {
	level, ok := map[string]slog.Level{
		"error": slog.LevelError, "warning": slog.LevelWarn, "info": slog.LevelInfo,
		"debug": slog.LevelDebug, "all": slog.LevelDebug - 4,
	}[o.logLevel]
	switch {
	case ok:
		return slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level})), nil
	case o.logLevel == "none":
		return slog.New(slog.DiscardHandler), nil
	}
	return nil, misuse("--log-level %s is not known: the levels are none, error, warning, info, debug and all", o.logLevel)
}

// filtered writes what is logged without the secrets that the runtime knows.
type filtered struct {
	w      io.Writer
	redact atomic.Pointer[func(string) string] // nil before there is a runtime
}

// Write writes one record of the log: that is how the handlers call it.
func (f *filtered) Write(b []byte) (int, error) {
	if redact := f.redact.Load(); redact != nil {
		if _, err := io.WriteString(f.w, (*redact)(string(b))); err != nil {
			return 0, err
		}
		return len(b), nil
	}
	return f.w.Write(b)
}

// otherServers reads the peers, and takes their tokens out of the environment:
// what runs below this process has no use for them.
func (o *options) otherServers() ([]remote.Peer, error) {
	var peers []remote.Peer
	for _, text := range o.peers {
		p, err := remote.ParsePeer(text, os.Getenv, os.ReadFile)
		if err != nil {
			return nil, misuse("--peer: %w", err)
		}
		if slices.ContainsFunc(peers, func(other remote.Peer) bool { return other.Name == p.Name }) {
			return nil, misuse("--peer: two peers are named %s", p.Name)
		}
		peers = append(peers, p)
	}
	for _, p := range peers {
		if p.TokenEnv != "" {
			os.Unsetenv(p.TokenEnv)
		}
	}
	return peers, nil
}

// gitHubToken is what the launcher passed on, if anything. The usual variables
// are the runtime's to look at.
func (o *options) gitHubToken() (string, error) {
	if o.authTokenEnv == "" {
		return "", nil
	}
	t := os.Getenv(o.authTokenEnv)
	if t == "" {
		return "", misuse("--auth-token-env names %s, which is not set", o.authTokenEnv)
	}
	return t, nil
}
