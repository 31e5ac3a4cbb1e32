package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/transom-run/transom"
)

// The methods by which a client's user runs commands.
func shellMethods() map[string]handler {
	return map[string]handler{
		"session.shell.exec":                 posted(execShell),
		"session.shell.kill":                 posted(killShell),
		"session.shell.executeUserRequested": waiting(runShell),
		"session.shell.cancelUserRequested":  posted(cancelShell),
	}
}

type shellParams struct {
	target
	Command   string `json:"command"`
	Cwd       string `json:"cwd"`
	Timeout   *int64 `json:"timeout"`
	ProcessID string `json:"processId"`
	Signal    string `json:"signal"`
	RequestID string `json:"requestId"`
}

// shellTimeout ends a command for which no other time was given.
const shellTimeout = 30 * time.Second

type shellOutput struct {
	SessionID string `json:"sessionId"`
	ProcessID string `json:"processId"`
	Stream    string `json:"stream"`
	Data      string `json:"data"`
}

type shellExit struct {
	SessionID string `json:"sessionId"`
	ProcessID string `json:"processId"`
	ExitCode  int    `json:"exitCode"`
}

// execShell starts a command. What it prints is sent to this client alone, behind
// the answer that names it.
func execShell(q *call, p *shellParams) {
	timeout := shellTimeout
	if p.Timeout != nil {
		if *p.Timeout < 0 {
			q.Reply(nil, invalid(q.op(), fmt.Sprintf("%s: the timeout is a number of milliseconds, not %d", q.op(), *p.Timeout)))
			return
		}
		timeout = time.Duration(*p.Timeout) * time.Millisecond
	}
	q.Go(func(context.Context) (any, error) {
		named := make(chan struct{})
		var id string
		tell := func(method string, note func() any) {
			select {
			case <-named:
			case <-q.c.rpc.Context().Done():
				return
			}
			if q.c.rpc.WaitRoom(q.c.rpc.Context()) == nil {
				_ = q.c.rpc.Notify(method, note()) // the connection has ended
			}
		}
		started, err := q.sess.Shells().Exec(transom.ShellCommand{
			Command: p.Command, Dir: p.Cwd, Timeout: timeout,
			Output: func(errors bool, data []byte) {
				stream := "stdout"
				if errors {
					stream = "stderr"
				}
				text := q.c.srv.cfg.Runtime.Redact(strings.ToValidUTF8(string(data), "\ufffd"))
				tell("shell.output", func() any { return shellOutput{q.lane.id, id, stream, text} })
			},
		}, func(id string, code int) { tell("shell.exit", func() any { return shellExit{q.lane.id, id, code} }) })
		if err != nil {
			return nil, fail(q.op(), err)
		}
		id = started
		q.ReplyThen(map[string]any{"processId": started}, nil, func() { close(named) })
		return nil, nil
	})
}

func killShell(q *call, p *shellParams) {
	switch p.Signal {
	case "":
		p.Signal = "SIGTERM"
	case "SIGTERM", "SIGINT", "SIGKILL":
	default:
		q.Reply(nil, invalid(q.op(), q.op()+": the signal is SIGTERM, SIGINT or SIGKILL, not "+p.Signal))
		return
	}
	q.Reply(map[string]any{"killed": q.sess.Shells().Kill(p.ProcessID, p.Signal)}, nil)
}

type shellResult struct {
	Success    bool   `json:"success"`
	ExitCode   int    `json:"exitCode"`
	Output     string `json:"output"`
	Error      string `json:"error,omitempty"`
	ToolCallID string `json:"toolCallId"`
}

func runShell(ctx context.Context, s *transom.Session, p *shellParams) (any, error) {
	r, err := s.Shells().Run(ctx, p.RequestID, p.Command)
	if err != nil {
		return nil, err
	}
	out := shellResult{Success: r.Code == 0, ExitCode: r.Code, Output: r.Output, ToolCallID: r.ToolCallID}
	if !out.Success {
		out.Error = fmt.Sprintf("the command ended with exit code %d", r.Code)
	}
	return out, nil
}

func cancelShell(q *call, p *shellParams) {
	q.Reply(map[string]any{"cancelled": q.sess.Shells().Cancel(p.RequestID)}, nil)
}
