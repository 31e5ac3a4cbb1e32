package durability

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/filelog"
	"github.com/transom-run/transom/eventlog/hostlog"
	"github.com/transom-run/transom/eventlog/memlog"
	"github.com/transom-run/transom/internal/builtin"
	"github.com/transom-run/transom/sessionfs"
)

// open makes the host of a history, and what opens its log when it has ended. k is
// in the way of the store's operations; nil is nobody.
func (hist history) open(ctx context.Context, home string, k *killer) (*host, eventlog.Store, error) {
	if hist.kept {
		open := func(id string) (sessionfs.FS, error) { return disk{filepath.Join(home, "kept", id), k}, nil }
		layout := sessionfs.Layout{Root: "/state"}
		h, err := hist.host(ctx, memlog.New(), home)
		if err != nil {
			return nil, nil, err
		}
		err = h.rt.KeepFiles(transom.HostFiles{Dir: home, Layout: layout, Open: open})
		return h, hostlog.New(hostlog.Config{Open: open, Layout: layout}), err
	}
	cfg := filelog.Config{Home: home}
	if k != nil {
		cfg.Seam = k
	}
	store, err := filelog.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	h, err := hist.host(ctx, store, home)
	return h, store, err
}

// log is where a history's log is.
func (hist history) log(home string) string {
	if hist.kept {
		return filepath.Join(home, "kept", sessionID, "state", "events.jsonl")
	}
	return filepath.Join(home, "session-state", sessionID, "events.jsonl")
}

// disk keeps a session's files as a host does, in a directory.
type disk struct {
	dir string
	k   *killer
}

func (d disk) pass() {
	if d.k != nil {
		d.k.pass()
	}
}

func (d disk) at(path string) string { return filepath.Join(d.dir, filepath.FromSlash(path)) }

// write writes a file, and may be cut off in the middle of it.
func (d disk) write(path, content string, flags int) error {
	d.pass()
	name := d.at(path)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|flags, 0o600)
	if err != nil {
		return err
	}
	if d.k != nil && d.k.point() {
		_, _ = f.WriteString(content[:len(content)/2])
		die()
	}
	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Close()); err == nil {
		d.pass()
	}
	return err
}

func (d disk) ReadFile(_ context.Context, path string) (string, error) {
	b, err := os.ReadFile(d.at(path))
	return string(b), err
}

func (d disk) WriteFile(_ context.Context, path, content string, _ fs.FileMode) error {
	return d.write(path, content, os.O_TRUNC)
}

func (d disk) AppendFile(_ context.Context, path, content string, _ fs.FileMode) error {
	return d.write(path, content, os.O_APPEND)
}

func (d disk) Exists(_ context.Context, path string) (bool, error) { return exists(d.at(path)), nil }

func (d disk) Stat(_ context.Context, path string) (sessionfs.Info, error) {
	i, err := os.Stat(d.at(path))
	if err != nil {
		return sessionfs.Info{}, err
	}
	return sessionfs.Info{Dir: i.IsDir(), Bytes: i.Size(), Modified: i.ModTime()}, nil
}

func (d disk) Mkdir(_ context.Context, path string, all bool, _ fs.FileMode) error {
	d.pass()
	if all {
		return os.MkdirAll(d.at(path), 0o700)
	}
	return os.Mkdir(d.at(path), 0o700)
}

func (d disk) ReadDir(_ context.Context, path string) ([]sessionfs.Entry, error) {
	list, err := os.ReadDir(d.at(path))
	var out []sessionfs.Entry
	for _, e := range list {
		out = append(out, sessionfs.Entry{Name: e.Name(), Dir: e.IsDir()})
	}
	return out, err
}

func (d disk) Remove(_ context.Context, path string, all, missing bool) error {
	d.pass()
	err := os.Remove(d.at(path))
	if all {
		err = os.RemoveAll(d.at(path))
	}
	if missing && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (d disk) Rename(_ context.Context, from, to string) error {
	d.pass()
	return os.Rename(d.at(from), d.at(to))
}

// agents are those of a session that has some.
func (h *host) agents() []transom.Agent {
	if !h.hist.crew {
		return nil
	}
	return []transom.Agent{{Name: "buyer", Description: "buys", Prompt: "You buy."}}
}

// writers are Transom's own tools, for files.
type writers struct{ *builtin.Set }

func (writers) Todos(context.Context) ([]transom.Todo, []transom.TodoDependency, error) {
	return nil, nil, nil
}

// builtIns makes Transom's own tools.
func builtIns(c transom.BuiltInContext) (transom.BuiltIns, error) {
	set, err := builtin.New(builtin.Config{Dir: c.Dir, SessionDir: c.Files, NoDatabase: true, BeforeWrite: func(ctx context.Context, ch builtin.Change) error {
		return c.BeforeWrite(ctx, transom.FileChange(ch))
	}})
	return writers{set}, err
}

// prompts are the events of the history in which a user says something.
func (h *host) prompts() (out []*event.Event, err error) {
	lines, err := h.s.Messages()
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		e, err := event.Decode(line)
		if err != nil {
			return nil, err
		}
		if e.Type == event.TypeUserMessage && e.AgentID == "" {
			out = append(out, e)
		}
	}
	return out, nil
}

// filesBack changes files in two turns, and brings back those of the second.
func filesBack(h *host) error {
	if err := h.create(); err != nil {
		return err
	}
	for _, p := range []string{"«make»", "«change»"} {
		if err := h.say(p); err != nil {
			return err
		}
	}
	said, err := h.prompts()
	if err != nil {
		return err
	}
	r, err := h.s.History().Rewind(h.ctx, said[1].ID, true)
	if err == nil && (r.Outcome != transom.Rewound || len(r.Skipped) > 0) {
		err = fmt.Errorf("the rewind came to %+v", r)
	}
	if err != nil {
		return err
	}
	h.note("truncated")
	return h.converse("«three»")
}

// filesAre: where the history has gone back the files have, too, and a rewind that
// was begun has come to an end.
func (h *host) filesAre(promises) error {
	log, damage, err := h.store.Open(h.ctx, sessionID)
	if err != nil || len(damage) > 0 {
		return fmt.Errorf("read the log: %v, %w", damage, err)
	}
	defer log.Close()
	begun, back := 0, 0
	for rec, err := range log.Read(0) {
		if err != nil {
			return err
		}
		e, err := event.Decode(rec.Line)
		if err != nil {
			return err
		}
		switch e.Type {
		case event.TypeRewindBegun:
			begun++
		case event.TypeTruncated:
			back++
		case event.TypeRewindDropped:
			return errors.New("the rewind was given up")
		}
	}
	if begun != back {
		return fmt.Errorf("%d rewinds were begun, and %d have ended", begun, back)
	}
	if back == 0 {
		return nil // what its calls came to is not known
	}
	for name, want := range map[string]string{"a.txt": "made", "b.txt": "made", "c.txt": ""} {
		got, err := os.ReadFile(filepath.Join(h.s.Info().Dir, name))
		if want == "" && !errors.Is(err, fs.ErrNotExist) || want != "" && string(got) != want {
			return fmt.Errorf("after the rewind %s holds %q (%v), not %q", name, got, err, want)
		}
	}
	return nil
}

// scheduled has three schedules: one that goes on, one that is stopped, and one that
// is due soon.
func scheduled(h *host) error {
	if err := h.create(); err != nil {
		return err
	}
	if err := h.say("«one»"); err != nil {
		return err
	}
	for i, s := range []transom.Schedule{{Every: time.Hour, Prompt: "«stays»"}, {Every: time.Hour, Prompt: "«stopped»"}, {Prompt: "«tick»"}} {
		for {
			if s.Every == 0 {
				s.At = time.Now().Add(20 * time.Millisecond)
			}
			err := h.s.Do(h.ctx, s)
			if err == nil {
				break
			}
			if s.Every > 0 || transom.KindOf(err) != transom.KindInvalidParams || h.ctx.Err() != nil {
				return err
			} // else it is past already
		}
		h.note("schedule%d", i+1)
	}
	h.note("stopping")
	if err := h.s.Do(h.ctx, transom.StopSchedule{ID: 2}); err != nil {
		return err
	}
	h.note("stopped")
	if err := h.ticked(promises{said: map[string]bool{"schedule3": true}}); err != nil {
		return err
	}
	return h.converse("«two»")
}

// ticked waits for the turn of the schedule that is due soon.
func (h *host) ticked(killed promises) error {
	if !killed.said["schedule3"] {
		if !slices.ContainsFunc(h.s.Schedules(), func(s transom.ScheduleEntry) bool { return s.Prompt == "«tick»" }) {
			return nil // it never came to it
		}
	}
	events := h.s.Subscribe()
	defer events.Close()
	if now := h.s.Info(); !now.Processing && slices.ContainsFunc(now.Queue, func(q transom.Pending) bool { return q.Prompt == "«tick»" }) {
		return nil // it was due, and goes before the next prompt
	}
	said, err := h.prompts()
	if err != nil {
		return err
	}
	for _, e := range said {
		if strings.Contains(string(e.Data), "«tick»") && !h.s.Info().Processing {
			return nil
		}
	}
	taken := slices.ContainsFunc(said, func(e *event.Event) bool { return strings.Contains(string(e.Data), "«tick»") })
	for e, err := range events.All(h.ctx) {
		if err != nil {
			return fmt.Errorf("waiting for the schedule: %w", err)
		}
		taken = taken || e.Type == event.TypeUserMessage && strings.Contains(string(e.Data), "«tick»")
		if taken && e.Type == event.TypeSessionIdle {
			return nil
		}
	}
	return errors.New("the session ended before its schedule was due")
}

// schedulesAre: a schedule that was made is there until it is stopped, or has sent
// its prompt, which it does once.
func (h *host) schedulesAre(killed promises) error {
	said, err := h.prompts()
	if err != nil {
		return err
	}
	ticks := 0
	for _, e := range said {
		if strings.Contains(string(e.Data), "«tick»") {
			ticks++
		}
	}
	have := map[string]int{}
	for _, s := range h.s.Schedules() {
		have[s.Prompt]++
	}
	switch {
	case killed.said["schedule3"] && ticks != 1, ticks > 1:
		return fmt.Errorf("the prompt of a schedule stands %d times in the history", ticks)
	case have["«tick»"] > 0:
		return errors.New("the schedule that was due is due again")
	case killed.said["schedule1"] && have["«stays»"] != 1, have["«stays»"] > 1:
		return fmt.Errorf("a schedule is there %d times", have["«stays»"])
	case killed.said["stopped"] && have["«stopped»"] > 0:
		return errors.New("a schedule that was stopped is there")
	case killed.said["schedule2"] && !killed.said["stopping"] && have["«stopped»"] != 1:
		return errors.New("a schedule is gone")
	}
	return nil
}
