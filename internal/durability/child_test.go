//go:build unix

package durability

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/transom-run/transom/eventlog/filelog"
)

// The environment of a child: this test binary as the program that is killed.
const (
	envHistory = "DURABILITY_HISTORY"
	envHome    = "DURABILITY_HOME"
	envAt      = "DURABILITY_AT"    // the point at which it ends itself; 0 is none
	envUntil   = "DURABILITY_UNTIL" // the note in the journal at which it does
)

func TestMain(m *testing.M) {
	switch name := os.Getenv(envHistory); name {
	case "":
		os.Exit(m.Run())
	case "contend":
		os.Exit(contend(os.Getenv(envHome)))
	default:
		os.Exit(child(name))
	}
}

// die ends the process as nothing in it can prevent.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// killer ends the process at a point: before or after an operation of the store, or
// in the middle of a write.
type killer struct {
	at int // 0 is nowhere

	mu  sync.Mutex
	now int // the points passed
}

func (k *killer) point() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now++
	return k.now == k.at
}

func (k *killer) pass() {
	if k.point() {
		die()
	}
}

func (k *killer) Do(_ filelog.Op, do func() error) error {
	k.pass()
	err := do()
	k.pass()
	return err
}

func (k *killer) Write(_ filelog.Op, b []byte, write func([]byte) (int, error)) (int, error) {
	k.pass()
	if k.point() { // torn in the middle
		_, _ = write(b[:len(b)/2])
		die()
	}
	if k.point() { // torn just before the end
		_, _ = write(b[:len(b)-1])
		die()
	}
	n, err := write(b)
	k.pass()
	return n, err
}

// child plays a history. It prints how many points it has passed.
func child(name string) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	at, _ := strconv.Atoi(os.Getenv(envAt))
	k := &killer{at: at}
	h, _, err := histories[name].open(ctx, os.Getenv(envHome), k)
	if err == nil {
		h.until = os.Getenv(envUntil)
		err = histories[name].run(h)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(k.now)
	return 0
}
