// Package sessionfstest has a host's files in memory, for tests of what stands
// upon them: they can be watched, held up, and made to fail.
//
//	m := sessionfstest.New()
//	m.Hook = func(op, path string) error { return errors.New("the disk is full") }
package sessionfstest

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/transom-run/transom/sessionfs"
)

// Memory is one session's files. Its methods may be called from any goroutine.
type Memory struct {
	// Hook is asked before each operation, without a lock: it may wait, and an
	// error is what the operation comes to. Set it before the first one.
	Hook func(op, path string) error
	// Landed, where set, is asked once an operation's Hook has failed: true carries
	// the operation out all the same, as a host does that answers too late.
	Landed func(op, path string) bool

	mu    sync.Mutex
	files map[string]string
	dirs  map[string]bool
	times map[string]time.Time
	calls []string
}

// New makes an empty file system.
func New() *Memory {
	return &Memory{files: map[string]string{}, dirs: map[string]bool{"/": true}, times: map[string]time.Time{}}
}

// Calls lists what was asked so far, as "op path".
func (m *Memory) Calls() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.calls)
}

// Put makes a file, however it looks.
func (m *Memory) Put(name, content string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(name, content)
}

// Get reads a file; "" where there is none.
func (m *Memory) Get(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files[name]
}

// do runs an operation with the lock held, once the hook lets it.
func (m *Memory) do(ctx context.Context, op, name string, f func() error) error {
	m.mu.Lock()
	m.calls = append(m.calls, op+" "+name)
	m.mu.Unlock()
	var refused error
	if m.Hook != nil {
		done := make(chan error, 1)
		go func() { done <- m.Hook(op, name) }()
		select {
		case refused = <-done:
		case <-ctx.Done():
			refused = context.Cause(ctx)
		}
	}
	if refused == nil {
		refused = context.Cause(ctx)
	}
	if refused != nil && (m.Landed == nil || !m.Landed(op, name)) {
		return refused
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := f(); err != nil {
		return err
	}
	return refused
}

func missing(op, name string) error {
	return &sessionfs.Error{Op: op, Path: name, Code: sessionfs.NotExist}
}

func (m *Memory) put(name, content string) {
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		m.dirs[dir] = true
		if dir == "/" || dir == "." {
			break
		}
	}
	m.files[name], m.times[name] = content, time.Now()
}

// ReadFile implements sessionfs.FS, as the methods below do.
func (m *Memory) ReadFile(ctx context.Context, name string) (text string, err error) {
	err = m.do(ctx, "readFile", name, func() error {
		var ok bool
		if text, ok = m.files[name]; !ok {
			return missing("readFile", name)
		}
		return nil
	})
	return text, err
}

// WriteFile makes or replaces a file.
func (m *Memory) WriteFile(ctx context.Context, name, content string, _ fs.FileMode) error {
	return m.do(ctx, "writeFile", name, func() error { m.put(name, content); return nil })
}

// AppendFile adds to a file.
func (m *Memory) AppendFile(ctx context.Context, name, content string, _ fs.FileMode) error {
	return m.do(ctx, "appendFile", name, func() error { m.put(name, m.files[name]+content); return nil })
}

// Exists reports whether something is there.
func (m *Memory) Exists(ctx context.Context, name string) (ok bool, err error) {
	err = m.do(ctx, "exists", name, func() error {
		_, ok = m.files[name]
		ok = ok || m.dirs[name]
		return nil
	})
	return ok, err
}

// Stat describes a file or directory.
func (m *Memory) Stat(ctx context.Context, name string) (i sessionfs.Info, err error) {
	err = m.do(ctx, "stat", name, func() error {
		text, ok := m.files[name]
		if !ok && !m.dirs[name] {
			return missing("stat", name)
		}
		i = sessionfs.Info{Dir: !ok, Bytes: int64(len(text)), Modified: m.times[name]}
		return nil
	})
	return i, err
}

// Mkdir makes a directory.
func (m *Memory) Mkdir(ctx context.Context, name string, all bool, _ fs.FileMode) error {
	return m.do(ctx, "mkdir", name, func() error {
		if !all && !m.dirs[path.Dir(name)] {
			return missing("mkdir", name)
		}
		if _, ok := m.files[name]; ok || m.dirs[name] && !all {
			return errors.New("it exists already")
		}
		for dir := name; !m.dirs[dir]; dir = path.Dir(dir) {
			m.dirs[dir] = true
		}
		return nil
	})
}

// ReadDir lists a directory.
func (m *Memory) ReadDir(ctx context.Context, name string) (out []sessionfs.Entry, err error) {
	err = m.do(ctx, "readdirWithTypes", name, func() error {
		if !m.dirs[name] {
			return missing("readdirWithTypes", name)
		}
		for file := range m.files {
			if path.Dir(file) == name {
				out = append(out, sessionfs.Entry{Name: path.Base(file)})
			}
		}
		for dir := range m.dirs {
			if dir != name && path.Dir(dir) == name {
				out = append(out, sessionfs.Entry{Name: path.Base(dir), Dir: true})
			}
		}
		slices.SortFunc(out, func(a, b sessionfs.Entry) int { return strings.Compare(a.Name, b.Name) })
		return nil
	})
	return out, err
}

// Remove removes a file or directory.
func (m *Memory) Remove(ctx context.Context, name string, all, missingOK bool) error {
	return m.do(ctx, "rm", name, func() error {
		_, file := m.files[name]
		if !file && !m.dirs[name] {
			if missingOK {
				return nil
			}
			return missing("rm", name)
		}
		below := func(p string) bool { return strings.HasPrefix(p, name+"/") }
		for p := range m.files {
			if below(p) && !all {
				return errors.New("the directory is not empty")
			}
		}
		delete(m.files, name)
		delete(m.dirs, name)
		for p := range m.files {
			if below(p) {
				delete(m.files, p)
			}
		}
		for p := range m.dirs {
			if below(p) {
				delete(m.dirs, p)
			}
		}
		return nil
	})
}

// Rename moves a file.
func (m *Memory) Rename(ctx context.Context, from, to string) error {
	return m.do(ctx, "rename", from, func() error {
		text, ok := m.files[from]
		if !ok {
			return missing("rename", from)
		}
		delete(m.files, from)
		m.put(to, text)
		return nil
	})
}
