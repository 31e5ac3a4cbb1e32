package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/mcp/host"
	"github.com/transom-run/transom/server"
	"github.com/transom-run/transom/telemetry"
)

// tokenVariable holds what clients must show to be served.
const tokenVariable = "COPILOT_CONNECTION_TOKEN"

const (
	// closeTime bounds the writing-out of sessions at the end of the process.
	closeTime = 3 * time.Second
	// flushTime bounds the sending of what is queued.
	flushTime = 2500 * time.Millisecond
)

// serve runs the server until its clients, its flags' mode or a signal end it.
func (o *options) serve(ctx context.Context, stdout, stderr io.Writer) error {
	logged := &filtered{w: stderr}
	log, err := o.logger(logged)
	if err != nil {
		return err
	}
	github, err := o.gitHubToken()
	if err != nil {
		return err
	}
	token := os.Getenv(tokenVariable)
	peers, err := o.otherServers()
	if err != nil {
		return err
	}
	var ln net.Listener
	if !o.stdio {
		if ln, err = o.listen(token); err != nil {
			return err
		}
		defer ln.Close()
	}
	watch, end := observer(log)
	defer end()
	rt, err := transom.Open(transom.Config{
		Observer:    watch,
		GitHubToken: github, GitHubTokenSource: o.authTokenEnv, NoAutoLogin: o.noAutoLogin,
		BuiltIns: builtIns, MCP: host.New, ApproveAll: o.yolo, Logger: log, PluginDirectories: o.plugins,
	})
	if err != nil {
		return err
	}
	redact := rt.Redact
	logged.redact.Store(&redact)
	if o.remote {
		log.Warn("--remote has no effect: there is no hosted service that sessions could be shown on")
	}
	// What runs below this process has no use for these, and must not print them.
	harden()
	rt.AddSecrets(append(telemetry.Secrets(os.Getenv), token)...)
	for _, p := range peers {
		rt.AddSecrets(p.Token)
	}
	os.Unsetenv(tokenVariable)
	if o.authTokenEnv != "" {
		os.Unsetenv(o.authTokenEnv)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	o.serving = true
	if o.stdio {
		srv := server.New(server.Config{Runtime: rt, Peers: peers, Extensions: extensions(), Logger: log})
		return finish(ctx, stop, rt, srv, serveStdio(ctx, srv))
	}
	fmt.Fprintf(stdout, "CLI server listening on port %d\n", ln.Addr().(*net.TCPAddr).Port)
	if token == "" {
		fmt.Fprintf(stderr, "Warning: %s is not set, so every process that can reach this port is served\n", tokenVariable)
	}
	srv := server.New(server.Config{Runtime: rt, Token: token, Peers: peers, Extensions: extensions(), Logger: log})
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(context.WithoutCancel(ctx), ln) }()
	return finish(ctx, stop, rt, srv, ended)
}

// listen opens the port, if it may be served.
func (o *options) listen(token string) (net.Listener, error) {
	if token == "" && o.requireToken {
		return nil, misuse("--require-token needs a token: set %s", tokenVariable)
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(o.host, strconv.Itoa(o.port)))
	if err != nil {
		return nil, fmt.Errorf("cannot serve on %s port %d: %w", o.host, o.port, err)
	}
	if token == "" && !ln.Addr().(*net.TCPAddr).IP.IsLoopback() {
		ln.Close()
		return nil, misuse("%q can be reached from other machines, so it is not served without a token: set %s, or use --host 127.0.0.1", o.host, tokenVariable)
	}
	return ln, nil
}

// serveStdio serves the client on stdin and stdout.
func serveStdio(ctx context.Context, srv *server.Server) <-chan error {
	ended := make(chan error, 1)
	conn := openStdio()
	go func() { ended <- srv.ServeConn(context.WithoutCancel(ctx), conn) }()
	return ended
}

// finish waits for a reason to end and ends in order: sessions first, then
// connections. A second signal ends the process at once.
func finish(ctx context.Context, stop func(), rt *transom.Runtime, srv *server.Server, ended <-chan error) error {
	var failure error
	select {
	case <-ctx.Done():
		stop()
	case <-srv.Stopped():
	case failure = <-ended:
	}
	closing, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := rt.Close(closing)
	flushing, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if e := srv.Shutdown(flushing); e != nil && err == nil && !errors.Is(e, context.DeadlineExceeded) {
		err = e
	}
	if failure != nil {
		return failure
	}
	return err
}

// extensions reports whether the environment lets sessions run extensions.
func extensions() bool {
	return slices.Contains(strings.Split(os.Getenv("COPILOT_CLI_ENABLED_FEATURE_FLAGS"), ","), "EXTENSIONS")
}
