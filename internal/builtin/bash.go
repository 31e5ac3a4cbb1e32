package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/transom-run/transom/tool"
)

// defaultWait is how long a call waits for its command, in seconds.
const defaultWait = 30

const bashSchema = `{
 "type": "object",
 "properties": {
  "command": {"type": "string", "description": "The command line, for bash."},
  "description": {"type": "string", "description": "What it does, in at most ten words: people read this when they are asked for approval."},
  "mode": {"type": "string", "enum": ["sync", "async"], "description": "sync (default) waits for the end, up to initial_wait. async returns at once, and write_bash can give the command input."},
  "initial_wait": {"type": "number", "description": "Seconds to wait for the end before the command goes on in the background; 30 by default."},
  "timeout": {"type": "number", "description": "Seconds after which the command is ended with everything it started. No limit by default."},
  "shellId": {"type": "string", "description": "A name for the command, for the other bash tools. Numbers are given by default."},
  "detach": {"type": "boolean", "description": "Start it so that it outlives the session, with its output in a file."}
 },
 "required": ["command", "description"]
}`

type bashArgs struct {
	Command     string   `json:"command"`
	Description string   `json:"description"`
	Mode        string   `json:"mode"`
	InitialWait *float64 `json:"initial_wait"`
	Timeout     float64  `json:"timeout"`
	ShellID     string   `json:"shellId"`
	Detach      bool     `json:"detach"`
}

func (s *Set) bash() tool.Tool {
	return tool.Tool{
		Name: "bash", Parameters: json.RawMessage(bashSchema), Effects: true,
		Permission: func(_ context.Context, call tool.Call) (tool.Permission, error) {
			var a bashArgs
			if err := decode(call, &a); err != nil {
				return tool.Permission{}, err
			}
			var warning string
			if a.Detach {
				warning = "The command goes on after the session has ended."
			}
			return s.askShell(call, a.Command, a.Description, warning)
		},
		Handler: s.runBash,
	}
}

func (s *Set) runBash(ctx context.Context, call tool.Call) (tool.Result, error) {
	var a bashArgs
	if err := decode(call, &a); err != nil {
		return tool.Result{}, err
	}
	if strings.TrimSpace(a.Command) == "" {
		return failure("The command is empty.")
	}
	if strings.ContainsRune(a.Command, 0) {
		return failure("The command holds a NUL character, which no command line can.")
	}
	dir := s.dir(call)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return failure("The working directory %s does not exist any more.", dir)
	}
	if a.Detach {
		return s.detach(a, dir)
	}
	async := a.Mode == "async"
	sh, err := s.shells.start(order{id: a.ShellID, command: a.Command, dir: dir, env: s.environment(), input: async,
		limit: seconds(a.Timeout), grace: s.cfg.Grace})
	if err != nil {
		return failure("%v", err)
	}
	wait := seconds(defaultWait)
	if async {
		wait = 0
	}
	if a.InitialWait != nil {
		wait = seconds(*a.InitialWait)
	}
	return s.settle(ctx, sh, wait, a.Timeout)
}

// settle waits for a command that was started just now and says what it came to.
// Where the call is cut off meanwhile, its command is ended.
func (s *Set) settle(ctx context.Context, sh *shell, wait time.Duration, limit float64) (tool.Result, error) {
	ended, err := sh.await(ctx, wait)
	if err != nil && !ended {
		sh.terminate(s.cfg.Grace)
		return tool.Result{}, err
	}
	if !ended {
		return success(join(sh.news(), fmt.Sprintf("<shellId: %s is still running. Use read_bash to wait for it and to read on, stop_bash to end it>", sh.id)))
	}
	res, err := success(join(sh.news(), exited(sh.code)))
	if sh.timedOut.Load() {
		res.Type = tool.Timeout
		res.Text = join(res.Text, fmt.Sprintf("The command took longer than %v and was ended.", seconds(limit)))
	}
	return res, err
}

// detach starts a command that outlives the session.
func (s *Set) detach(a bashArgs, dir string) (tool.Result, error) {
	file, err := s.sessionFile("detached", fmt.Sprintf("%d.log", time.Now().UnixNano()))
	if err != nil {
		return failure("The command cannot be detached: %v", err)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return tool.Result{}, err
	}
	f.Close()
	pid, err := startDetached(dir, s.environment(), a.Command, file)
	if err != nil {
		return failure("The command cannot be detached: %v", err)
	}
	return success(fmt.Sprintf("<detached with process id %s; its output goes to %s>", strings.TrimSpace(pid), filepath.ToSlash(file)))
}

// join puts a line below some output.
func join(output, line string) string {
	if output != "" && !strings.HasSuffix(output, "\n") {
		output += "\n"
	}
	return output + line
}

// seconds is a duration that a model gave: never negative, at most a week.
func seconds(n float64) time.Duration {
	const most = 7 * 24 * 3600
	if math.IsNaN(n) {
		return 0
	}
	return time.Duration(min(max(n, 0), most) * float64(time.Second))
}
