package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// rig is one runtime under measurement.
type rig struct {
	bin   string
	model *modelServer
	options
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func newID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// settle lets a process come to rest before its memory is read.
func settle() { time.Sleep(time.Second) }

// with runs f with a fresh home and a process in it.
func (r rig) with(f func(p *process) error) error {
	home, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	p, err := launch(r.bin, home)
	if err != nil {
		return err
	}
	defer p.kill()
	return f(p)
}

// session runs f with a session that had one turn.
func (r rig) session(streaming bool, f func(s *session) error) error {
	return r.with(func(p *process) error {
		s, err := p.open("session.create", newID(), r.model, streaming)
		if err != nil {
			return err
		}
		if _, err := s.ask("say warm"); err != nil {
			return err
		}
		return f(s)
	})
}

func (r rig) start() (figures, error) {
	out := figures{}
	begin := time.Now()
	return out, r.with(func(p *process) error {
		out["start_ms"] = ms(time.Since(begin))
		settle()
		out["idle_mib"] = p.memory() / 1024
		return nil
	})
}

func (r rig) turn() (figures, error) {
	out := figures{}
	return out, r.with(func(p *process) error {
		begin := time.Now()
		s, err := p.open("session.create", newID(), r.model, false)
		if err != nil {
			return err
		}
		out["create_ms"] = ms(time.Since(begin))
		out["turn_ms"], err = s.turns(r.turns)
		return err
	})
}

// turns is the median of n turns, the first left out.
func (s *session) turns(n int) (float64, error) {
	var each []float64
	for range n + 1 {
		d, err := s.ask("say hello")
		if err != nil {
			return 0, err
		}
		each = append(each, ms(d))
	}
	return median(each[1:]), nil
}

func (r rig) tools() (figures, error) {
	out := figures{}
	return out, r.session(false, func(s *session) error {
		d, err := s.ask(fmt.Sprintf("loop probe %d", r.rounds))
		out["tool_round_ms"] = ms(d) / float64(r.rounds)
		return err
	})
}

func (r rig) stream() (figures, error) {
	out := figures{}
	return out, r.session(true, func(s *session) error {
		s.deltas.Store(0)
		d, err := s.ask(fmt.Sprintf("stream %d", r.deltas))
		out["us_per_delta"] = float64(d.Microseconds()) / float64(r.deltas)
		out["deltas"] = float64(s.deltas.Load())
		return err
	})
}

// clearOnce makes the session's clearing tool clear, and notes the call.
func (s *session) clearOnce(out figures) {
	s.clear = func() error {
		var answer struct{ MessagesCleared float64 }
		begin := time.Now()
		err := s.p.call("session.history.clearContext", map[string]any{"sessionId": s.id, "prompt": "say fresh"}, &answer)
		if out != nil {
			out["call_ms"] = ms(time.Since(begin))
			out["messages_cleared"] = answer.MessagesCleared
		}
		return err
	}
}

func (r rig) clear() (figures, error) {
	out := figures{}
	return out, r.session(false, func(s *session) error {
		for range r.history {
			if _, err := s.ask("say " + strings.Repeat("history ", 20)); err != nil {
				return err
			}
		}
		s.clearOnce(out)
		d, err := s.ask("call clear_context {}")
		out["to_idle_ms"] = ms(d)
		return err
	})
}

// hold opens n sessions and gives each a turn.
func (r rig) hold(p *process, n int) error {
	for range n {
		s, err := p.open("session.create", newID(), r.model, false)
		if err != nil {
			return err
		}
		if _, err := s.ask("say hello"); err != nil {
			return err
		}
	}
	return nil
}

func (r rig) sessions() (figures, error) {
	out := figures{}
	return out, r.session(false, func(s *session) error {
		settle()
		base := s.p.memory()
		begin := time.Now()
		if err := r.hold(s.p, r.options.sessions); err != nil {
			return err
		}
		out["open_and_turn_ms"] = ms(time.Since(begin)) / float64(r.options.sessions)
		settle()
		out["session_kib"] = (s.p.memory() - base) / float64(r.options.sessions)
		return nil
	})
}

// restart kills the process and resumes the session in a new one.
func (r rig) restart(s *session, out figures, suffix string) error {
	settle()
	s.p.kill()
	p, err := launch(r.bin, s.p.home)
	if err != nil {
		return err
	}
	defer p.kill()
	settle()
	base := p.memory()
	begin := time.Now()
	again, err := p.open("session.resume", s.id, r.model, false)
	if err != nil {
		return err
	}
	out["resume_ms"+suffix] = ms(time.Since(begin))
	out["growth_mib"+suffix] = (p.memory() - base) / 1024
	_, err = again.ask("say again")
	return err
}

func (r rig) resume() (figures, error) {
	out := figures{}
	return out, r.session(false, func(s *session) error {
		for range r.stored {
			if _, err := s.ask("say " + strings.Repeat("history ", 100)); err != nil {
				return err
			}
		}
		return r.restart(s, out, "")
	})
}

func (r rig) growth() (figures, error) {
	out := figures{}
	return out, r.session(false, func(s *session) error {
		s.clearOnce(nil)
		done := 0
		for _, n := range []int{10, 100, 1000, 5000} {
			for ; done < n; done++ {
				if _, err := s.ask("say hello"); err != nil {
					return err
				}
			}
			var err error
			if out[fmt.Sprintf("turn_ms_at_%04d", n)], err = s.turns(20); err != nil {
				return err
			}
			done += 21
		}
		if _, err := s.ask("call clear_context {}"); err != nil {
			return err
		}
		var err error
		out["turn_ms_cleared"], err = s.turns(20)
		return err
	})
}

func (r rig) held() (figures, error) {
	out := figures{}
	return out, r.session(false, func(s *session) error {
		settle()
		base := s.p.memory()
		held := 0
		for _, n := range []int{100, 1000, 5000} {
			if err := r.hold(s.p, n-held); err != nil {
				return err
			}
			held = n
			settle()
			out[fmt.Sprintf("session_kib_of_%04d", n)] = (s.p.memory() - base) / float64(n)
		}
		return nil
	})
}

func (r rig) logs() (figures, error) {
	out := figures{}
	filler := "say " + strings.Repeat("history ", 8<<10)
	for _, mb := range []int{1, 10, 100, 600} {
		err := r.session(false, func(s *session) error {
			s.clearOnce(nil)
			for turn := 0; s.p.stored() < int64(mb)<<20; turn++ {
				if _, err := s.ask(filler); err != nil {
					return err
				}
				if turn%10 == 9 {
					if _, err := s.ask("call clear_context {}"); err != nil {
						return err
					}
				}
			}
			for _, prompt := range []string{"call clear_context {}", "say hello", "say hello"} {
				if _, err := s.ask(prompt); err != nil {
					return err
				}
			}
			return r.restart(s, out, fmt.Sprintf("_%03dMB", mb))
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// stored is the size of the files under the home, in bytes.
func (p *process) stored() int64 {
	var sum int64
	filepath.Walk(p.home, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			sum += info.Size()
		}
		return nil
	})
	return sum
}
