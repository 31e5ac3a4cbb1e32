// Package holds keeps account of which sessions are loaded ("presence") and
// which are being written to ("the pen") in this process, and asks the
// operating system about the others.
//
//	Hold ─┐
//	Hold ─┼─▶ Table ──▶ OS (two locks a session; nil: no other process)
//	Hold ─┘
//
// The account is needed because the operating system's record locks belong to
// the process: among the holders of one process it sees no contention.
//
// # Ordering
//
// A Table takes its steps one at a time, with its lock held across the
// (non-blocking) call to the operating system, so that account and lock never
// disagree.
package holds

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/transom-run/transom/eventlog"
)

// OS is the operating system's side of a table. Keys are below 2^61. No method
// waits for a lock.
type OS interface {
	// Share marks the session as loaded by this process; Unshare ends that.
	Share(key int64) error
	Unshare(key int64) error
	// SharedElsewhere reports whether another process has the mark.
	SharedElsewhere(key int64) (bool, error)
	// TakePen takes the exclusive lock. Where another process has it, free is
	// false and pid names that process (0: not known).
	TakePen(key int64) (free bool, pid int, err error)
	DropPen(key int64) error
}

// Key is the number of a session's locks: 61 bits of a hash of its id. Two
// sessions share one with a chance of 2^-61; the only consequence is that they
// then look like one session here, so that one may be called busy while the
// other is: too strict, never too lax.
func Key(id string) int64 {
	sum := sha256.Sum256([]byte(id))
	return int64(binary.BigEndian.Uint64(sum[:8]) >> 3)
}

// Table is the account of one store's holds in this process.
type Table struct {
	os OS

	mu   sync.Mutex
	held map[int64]*session
}

type session struct {
	holders int
	pen     *Hold // nil: free in this process
}

// New makes a table. With a nil OS this process is the whole world.
func New(os OS) *Table { return &Table{os: os, held: map[int64]*session{}} }

// Hold implements eventlog.Hold.
type Hold struct {
	table    *Table
	id       string
	key      int64
	session  *session
	released bool
}

// Hold marks a session as loaded.
func (t *Table) Hold(id string) (*Hold, error) {
	key := Key(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.held[key]
	if s == nil {
		if t.os != nil {
			if err := t.os.Share(key); err != nil {
				return nil, fmt.Errorf("mark session %s as loaded: %w", id, err)
			}
		}
		s = &session{}
		t.held[key] = s
	}
	s.holders++
	return &Hold{table: t, id: id, key: key, session: s}, nil
}

// Others implements eventlog.Hold.
func (h *Hold) Others() (bool, error) {
	t := h.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if h.released {
		return false, h.gone()
	}
	if h.session.holders > 1 || t.os == nil {
		return h.session.holders > 1, nil
	}
	other, err := t.os.SharedElsewhere(h.key)
	if err != nil {
		return false, fmt.Errorf("ask who has session %s loaded: %w", h.id, err)
	}
	return other, nil
}

// TakePen implements eventlog.Hold.
func (h *Hold) TakePen() error {
	t := h.table
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case h.released:
		return h.gone()
	case h.session.pen == h:
		return nil
	case h.session.pen != nil:
		return &eventlog.HeldError{SessionID: h.id, PID: os.Getpid()}
	}
	if t.os != nil {
		free, pid, err := t.os.TakePen(h.key)
		if err != nil {
			return fmt.Errorf("take the right to write to session %s: %w", h.id, err)
		}
		if !free {
			return &eventlog.HeldError{SessionID: h.id, PID: pid}
		}
	}
	h.session.pen = h
	return nil
}

// DropPen implements eventlog.Hold.
func (h *Hold) DropPen() error {
	h.table.mu.Lock()
	defer h.table.mu.Unlock()
	return h.dropPen()
}

func (h *Hold) dropPen() error {
	if h.session.pen != h {
		return nil
	}
	h.session.pen = nil
	if h.table.os == nil {
		return nil
	}
	if err := h.table.os.DropPen(h.key); err != nil {
		return fmt.Errorf("give back the right to write to session %s: %w", h.id, err)
	}
	return nil
}

// Release implements eventlog.Hold. A second Release does nothing.
func (h *Hold) Release() error {
	t := h.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if h.released {
		return nil
	}
	err := h.dropPen()
	h.released = true
	h.session.holders--
	if h.session.holders > 0 {
		return err
	}
	delete(t.held, h.key)
	if t.os != nil {
		if e := t.os.Unshare(h.key); e != nil {
			err = errors.Join(err, fmt.Errorf("unmark session %s: %w", h.id, e))
		}
	}
	return err
}

func (h *Hold) gone() error {
	return fmt.Errorf("session %s: its hold was released", h.id)
}
