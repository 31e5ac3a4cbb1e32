package builtin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxRunning is how many commands of a session may run at once.
	maxRunning = 64
	// maxEnded is how many commands that have ended can still be read.
	maxEnded = 32
)

// shells is the table of a session's commands.
type shells struct {
	mu     sync.Mutex
	nonce  string // begins every marker of this session
	byID   map[string]*shell
	next   int // the next number for a command without an id
	serial int // how many were started
	closed bool
	wg     sync.WaitGroup
}

// shell is one command, running or ended.
type shell struct {
	id      string
	command string
	marker  string
	proc    *process
	started time.Time
	out     output

	drained chan struct{} // closed when nothing holds its terminal any more
	exited  chan struct{} // closed when the shell itself has ended
	ended   chan struct{} // closed when what it printed until then is in out
	code    int           // valid after exited

	timedOut atomic.Bool // it is being ended because its time is over

	mu   sync.Mutex // one reader at a time
	seen int64      // how much of out has been shown
}

func (t *shells) init() {
	t.nonce = strings.ToLower(rand.Text()[:16])
	t.byID = map[string]*shell{}
}

var errClosed = errors.New("the session is closed: no command can be started any more")

// order is a command to be started.
type order struct {
	id      string // "" takes a number
	command string
	dir     string
	env     []string
	input   bool          // it can be given input
	limit   time.Duration // when it is ended; 0 is never
	grace   time.Duration
}

func (t *shells) start(o order) (*shell, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosed
	}
	running := 0
	for _, sh := range t.byID {
		if !sh.hasEnded() {
			running++
		}
	}
	if running >= maxRunning {
		return nil, fmt.Errorf("%d commands run already: stop one with stop_bash first", running)
	}
	id := o.id
	if id == "" {
		for id = strconv.Itoa(t.next); t.byID[id] != nil; id = strconv.Itoa(t.next) {
			t.next++
		}
		t.next++
	} else if sh := t.byID[id]; sh != nil && !sh.hasEnded() {
		return nil, fmt.Errorf("a command with the shellId %q still runs: read it with read_bash, stop it with stop_bash, or take another shellId", id)
	}
	sh := &shell{id: id, command: o.command, started: time.Now(),
		marker: fmt.Sprintf("%s-%d-", t.nonce, t.serial), drained: make(chan struct{}), exited: make(chan struct{}), ended: make(chan struct{})}
	t.serial++
	proc, err := startProcess(o.dir, append(o.env, marker+"="+sh.marker), o.command, o.input)
	if err != nil {
		return nil, fmt.Errorf("the shell could not be started: %w", err)
	}
	sh.proc = proc
	t.byID[id] = sh
	t.forget()
	t.wg.Go(sh.read)
	t.wg.Go(sh.watch)
	if o.limit > 0 {
		t.wg.Go(func() { sh.bound(o.limit, o.grace) })
	}
	return sh, nil
}

// bound ends the command once its time is over.
func (sh *shell) bound(limit, grace time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-sh.ended:
	case <-timer.C:
		sh.timedOut.Store(true)
		sh.terminate(grace)
	}
}

// forget drops the commands that ended longest ago.
func (t *shells) forget() {
	var ended []*shell
	for _, sh := range t.byID {
		if sh.hasEnded() {
			ended = append(ended, sh)
		}
	}
	slices.SortFunc(ended, func(a, b *shell) int { return a.started.Compare(b.started) })
	for len(ended) > maxEnded {
		if sh := ended[0]; t.byID[sh.id] == sh && isClosed(sh.drained) {
			delete(t.byID, sh.id)
		}
		ended = ended[1:]
	}
}

func (t *shells) find(id string) (*shell, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if sh := t.byID[id]; sh != nil {
		return sh, nil
	}
	if len(t.byID) == 0 {
		return nil, fmt.Errorf("there is no command with the shellId %q, and no other", id)
	}
	return nil, fmt.Errorf("there is no command with the shellId %q. Those there are: %s", id, strings.Join(slices.Sorted(maps.Keys(t.byID)), ", "))
}

func (t *shells) list() []*shell {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Values(t.byID), func(a, b *shell) int { return a.started.Compare(b.started) })
}

// closeAll ends everything and waits until it has ended.
func (t *shells) closeAll(grace time.Duration) {
	t.mu.Lock()
	t.closed = true
	started := t.serial > 0
	all := slices.Collect(maps.Values(t.byID))
	t.mu.Unlock()
	var wg sync.WaitGroup
	for _, sh := range all {
		wg.Go(func() { sh.terminate(grace) })
	}
	wg.Wait()
	if started {
		// What belonged to commands that are forgotten, or has left them.
		forceAll(func() bool { return forceMarked(t.nonce+"-") == 0 })
	}
	for _, sh := range all {
		sh.proc.release()
	}
	t.wg.Wait()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (sh *shell) hasEnded() bool { return isClosed(sh.ended) }

// read collects the output for as long as something may print.
func (sh *shell) read() {
	defer close(sh.drained)
	defer sh.proc.release()
	buf := make([]byte, 16<<10)
	for {
		n, err := sh.proc.out.Read(buf)
		_, _ = sh.out.Write(buf[:n])
		if err != nil {
			return // nobody holds the other end, or the session is over
		}
	}
}

// watch waits for the shell's end, and then for what it printed. Programs that it
// left running may hold the terminal: they are not waited for.
func (sh *shell) watch() {
	sh.code = sh.proc.wait()
	close(sh.exited)
	defer close(sh.ended)
	quiet, most := 2*time.Second, 5*time.Second
	if sh.proc.alive() {
		quiet, most = 150*time.Millisecond, 500*time.Millisecond
	}
	deadline := time.After(most)
	for {
		select {
		case <-sh.drained:
			return
		case <-deadline:
			return
		case <-time.After(quiet):
			return
		case <-sh.out.moved():
		}
	}
}

// terminate ends the command and everything it started: first by request, after
// the grace period by force. It returns when the shell has ended.
func (sh *shell) terminate(grace time.Duration) {
	if sh.gone() {
		return
	}
	sh.askAll()
	over := time.After(grace)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !sh.gone() {
		select {
		case <-tick.C:
			continue
		case <-over:
		}
		break
	}
	forceAll(func() bool {
		if sh.holdsGroup() {
			sh.proc.force()
		}
		return forceMarked(sh.marker) == 0
	})
	<-sh.ended
}

// forceAll repeats until nothing is left, so that what is forked in between is
// ended too. What the system does not let go of is given up after a second.
func forceAll(force func() (done bool)) {
	for deadline := time.Now().Add(time.Second); !force() && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
}

func (sh *shell) askAll() {
	if sh.holdsGroup() {
		sh.proc.ask()
	}
	askMarked(sh.marker)
}

// holdsGroup reports whether the process group is certainly this command's: once
// the shell has ended and nobody holds its terminal, the number may be another's.
func (sh *shell) holdsGroup() bool { return !isClosed(sh.exited) || !isClosed(sh.drained) }

// gone reports whether nothing of the command is left.
func (sh *shell) gone() bool {
	if !sh.hasEnded() || sh.holdsGroup() && sh.proc.alive() {
		return false
	}
	return !anyMarked(sh.marker)
}

// await waits until the command has ended, the time is over, or ctx ends. It
// reports whether the command has ended.
func (sh *shell) await(ctx context.Context, d time.Duration) (bool, error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-sh.ended:
		return true, nil
	case <-ctx.Done():
		return sh.hasEnded(), ctx.Err()
	case <-timer.C:
		return sh.hasEnded(), nil
	}
}

// news is what the command printed since it was last asked.
func (sh *shell) news() string {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	raw, end := sh.out.since(sh.seen, !sh.hasEnded())
	sh.seen = end
	return readable(raw)
}
