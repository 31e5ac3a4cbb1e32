package extension

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Extension is an extension that was found.
type Extension struct {
	ID     string // SOURCE:NAME
	Name   string // of its directory
	Source string // "project" or "user"
	File   string // its entry module, absolute
}

// entries are the names of an extension's entry module.
var entries = []string{"extension.mjs", "extension.js"}

// Find lists the extensions of a directory that holds one in each of its own
// directories, by name. Links are not followed.
func Find(dir, source string) []Extension {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	f, err := root.Open(".")
	if err != nil {
		return nil
	}
	defer f.Close()
	list, err := f.ReadDir(-1)
	if err != nil {
		return nil
	}
	var out []Extension
	for _, d := range list {
		if !d.IsDir() {
			continue
		}
		for _, name := range entries {
			if i, err := root.Lstat(filepath.Join(d.Name(), name)); err == nil && i.Mode().IsRegular() {
				out = append(out, Extension{source + ":" + d.Name(), d.Name(), source, filepath.Join(dir, d.Name(), name)})
				break
			}
		}
	}
	slices.SortFunc(out, func(a, b Extension) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Config says how an extension is run.
type Config struct {
	Extension Extension
	SessionID string
	Dir       string // the session's working directory
	// SDK is the directory of the SDK's modules (index.js, extension.js); "" leaves
	// its import to node.
	SDK string
	// Environ is the environment, without what the extension must not see.
	Environ []string
	// Log gets each line of stderr.
	Log func(line string)
}

// Process is an extension that runs. Reading and writing is the protocol.
type Process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	ended  chan struct{}
	close  sync.Once
	stderr sync.WaitGroup
	why    string // it ended; until ended is closed, what stderr says of that
}

// maxLine bounds what is kept of a line of stderr, in bytes.
const maxLine = 1 << 10

// Start runs an extension.
func Start(cfg Config) (*Process, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, fmt.Errorf("the extension %s needs node, which is not on the path of the runtime: %w", cfg.Extension.ID, err)
	}
	var args []string
	if cfg.SDK != "" && holdsSDK(cfg.SDK) {
		args = append(args, "--import", loader(cfg.SDK))
	}
	cmd := exec.Command(node, append(args, cfg.Extension.File)...)
	cmd.Dir = cfg.Dir
	cmd.Env = append(slices.Clone(cfg.Environ), "SESSION_ID="+cfg.SessionID)
	apart(cmd)
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.out, err = cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("the extension %s cannot be started: %w", cfg.Extension.ID, err)
	}
	p.stderr.Go(func() {
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			if cfg.Log != nil {
				cfg.Log(lines.Text())
			}
			if line := strings.TrimSpace(lines.Text()); line != "" {
				if strings.Contains(line, "Error") || p.why == "" {
					p.why = strings.ToValidUTF8(line[:min(len(line), maxLine)], "")
				}
			}
		}
		_, _ = io.Copy(io.Discard, stderr) // a line that is too long must not stop it
	})
	return p, nil
}

// holdsSDK says whether a directory has the files that loader names. One that has
// not is passed over, as the SDKs' types say: node then looks for the SDK itself.
func holdsSDK(dir string) bool {
	for _, name := range []string{"index.js", "extension.js"} {
		if fi, err := os.Stat(filepath.Join(dir, name)); err != nil || fi.IsDir() {
			return false
		}
	}
	return true
}

// loader is a module that lets node find the SDK where the host has it.
func loader(sdk string) string {
	base := url.URL{Scheme: "file", Path: filepath.ToSlash(sdk) + "/"}
	quoted, _ := json.Marshal(base.String()) // a text always encodes
	hooks := `const base=` + string(quoted) + `;const name="@github/copilot-sdk";
export async function resolve(what,context,next){
if(what===name)return next(new URL("index.js",base).href,context);
if(what.startsWith(name+"/"))return next(new URL(what.slice(name.length+1)+".js",base).href,context);
return next(what,context);}`
	inner, _ := json.Marshal("data:text/javascript," + url.PathEscape(hooks))
	return "data:text/javascript," + url.PathEscape(`import{register}from"node:module";register(`+string(inner)+`);`)
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Why says how the extension ended, in words for a person. It may be called once Close
// has returned.
func (p *Process) Why() string { return p.why }

// Read reads what the extension sends.
func (p *Process) Read(b []byte) (int, error) { return p.out.Read(b) }

// Write sends the extension something.
func (p *Process) Write(b []byte) (int, error) { return p.in.Write(b) }

// grace is how long an extension has to end once its connection is closed.
const grace = 2 * time.Second

// Close closes the connection and ends the extension with all it started; it
// returns when that has ended.
func (p *Process) Close() error {
	p.close.Do(func() {
		p.in.Close()
		terminate(p.cmd)
		timer := time.AfterFunc(grace, func() { kill(p.cmd) })
		p.stderr.Wait()
		err := p.cmd.Wait()
		timer.Stop()
		kill(p.cmd)   // what it left behind
		said := p.why // the newest line that names an error, or the first one
		if p.why = "it ended"; p.cmd.ProcessState != nil {
			p.why = "it ended (" + p.cmd.ProcessState.String() + ")"
		}
		if said != "" {
			p.why += ": " + said
		}
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			p.out.Close()
		}
		close(p.ended)
	})
	<-p.ended
	return nil
}
