package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// watchdog is how long one case may take. It is far above what any case needs:
// hosts wait for events, never for time.
var watchdog = 30 * time.Second

// environment is what hosts and runtimes get: this process's, without anything
// that would point them at another runtime, home, model or account.
func environment(extra ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "COPILOT_") || strings.HasPrefix(kv, "GH_TOKEN=") || strings.HasPrefix(kv, "GITHUB_TOKEN=")
	})
	return append(env, extra...)
}

// play runs the language's host until the queue is empty. A host that hangs or
// ends early costs the case it was at, and is started again for the rest.
func (d *desk) play(ctx context.Context) error {
	for {
		d.mu.Lock()
		left := len(d.queue)
		d.mu.Unlock()
		if left == 0 || ctx.Err() != nil {
			return ctx.Err()
		}
		reason, stderr := d.playOnce(ctx)
		switch {
		case d.now() != nil:
			d.end(nil, strings.TrimSpace(reason+"\n"+stderr))
		case reason != "":
			return fmt.Errorf("%s\n%s", reason, stderr)
		}
	}
}

// playOnce is one life of the host process. It returns why it ended, "" where
// that was in order, and the end of what it wrote to stderr.
func (d *desk) playOnce(ctx context.Context) (reason, stderr string) {
	cmd := d.lang.command(ctx, d.tmp, d.lang.Host)
	cmd.Env = environment("COPILOT_CLI_PATH="+d.bin, "CONFORMANCE_URL="+d.base)
	tail := &tailBuffer{}
	cmd.Stdout, cmd.Stderr = tail, tail
	if err := cmd.Start(); err != nil {
		return err.Error(), ""
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	timer := time.NewTimer(watchdog)
	defer timer.Stop()
	for {
		select {
		case <-d.progress:
			timer.Reset(watchdog)
			tail.reset()
		case err := <-ended:
			if err == nil && d.now() == nil {
				return "", ""
			}
			return fmt.Sprintf("the host ended (%v)", err), tail.String()
		case <-timer.C:
			_ = endGroup(cmd)
			<-ended
			return fmt.Sprintf("the host did not get on for %v", watchdog), tail.String()
		}
	}
}

// playExample runs a hand-written program that knows nothing of this runner: the
// example, or the one the case names. The runtime finds the model by its
// environment.
func (d *desk) playExample(ctx context.Context) {
	r, err := d.begin()
	if r == nil {
		return
	}
	if err != nil {
		d.end(nil, err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(ctx, watchdog)
	defer cancel()
	program := d.lang.Example
	if r.c.Over != "example" {
		program = d.lang.Programs[r.c.Over]
	}
	cmd := d.lang.command(ctx, d.tmp, program)
	cmd.WaitDelay = time.Second // what it started must not keep us waiting
	cmd.Env = environment("COPILOT_CLI_PATH="+d.bin, "COPILOT_HOME="+d.home(r), "COPILOT_MODEL=scripted",
		"COPILOT_PROVIDER_BASE_URL="+d.modelURL(r.c), "COPILOT_PROVIDER_API_KEY=none")
	var stdout bytes.Buffer
	tail := &tailBuffer{}
	cmd.Stdout, cmd.Stderr = &stdout, tail
	if err := cmd.Run(); err != nil {
		d.end(nil, fmt.Sprintf("the program ended (%v)\n%s", err, tail.String()))
		return
	}
	d.end(&Observation{Stdout: stdout.String()}, "")
}

// playRefused runs the example of an SDK that speaks another protocol. It must
// end with an error that says so; the error is returned as the reason why no
// case was run.
func (d *desk) playRefused(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, watchdog)
	defer cancel()
	cmd := d.lang.command(ctx, d.tmp, d.lang.Example)
	cmd.Env = environment("COPILOT_CLI_PATH="+d.bin, "COPILOT_HOME="+d.tmp)
	tail := &tailBuffer{}
	cmd.Stdout, cmd.Stderr = tail, tail
	err := cmd.Run()
	for line := range strings.Lines(tail.String()) {
		if err != nil && ctx.Err() == nil && textMatches(d.lang.Refused, line) {
			return "it is refused, as it must be: " + strings.TrimSpace(line), nil
		}
	}
	return "", fmt.Errorf("this SDK must be refused with an error like %q, but its example ended with %v\n%s", d.lang.Refused, err, tail.String())
}

// tailBuffer keeps the last of what is written to it.
type tailBuffer struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - 4000; over > 0 {
		t.buf = slices.Delete(t.buf, 0, over)
	}
	return len(p), nil
}

// reset forgets what was written: a new case begins.
func (t *tailBuffer) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = nil
}

func (t *tailBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

// runtimeServer is a runtime that the runner starts for hosts to join.
type runtimeServer struct {
	cmd        *exec.Cmd
	url, token string
}

var listening = regexp.MustCompile(`CLI server listening on port (\d+)`)

// startServer launches the runtime as the SDKs do in TCP mode and reads the
// port it chose.
func startServer(bin, home string) (*runtimeServer, error) {
	const token = "conformance"
	cmd := exec.Command(bin, "--headless", "--no-auto-update", "--log-level", "error", "--port", "0")
	cmd.Env = environment("COPILOT_HOME="+home, "COPILOT_CONNECTION_TOKEN="+token)
	cmd.Dir = home
	ownGroup(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &runtimeServer{cmd: cmd, token: token}
	port := make(chan string, 1)
	go func() {
		defer close(port)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				port <- m[1]
			}
		}
	}()
	select {
	case p, ok := <-port:
		if !ok {
			_ = cmd.Wait()
			return nil, fmt.Errorf("%s ended before it listened", bin)
		}
		s.url = "127.0.0.1:" + p
		return s, nil
	case <-time.After(watchdog):
		s.stop()
		return nil, errors.New("the runtime did not say which port it listens on")
	}
}

func (s *runtimeServer) stop() {
	_ = endGroup(s.cmd)
	_ = s.cmd.Wait()
}

// buildRuntime builds ./cmd/transom of the module this command is run in.
func buildRuntime(ctx context.Context, root, tmp string) (string, error) {
	bin := filepath.Join(tmp, "transom")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", bin, "./cmd/transom")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build ./cmd/transom: %w\n%s", err, out)
	}
	return bin, nil
}
