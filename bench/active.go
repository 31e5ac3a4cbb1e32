package main

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// active has many sessions of one process run turns at the same time, each the next
// one as soon as the last has ended, and says how long a turn takes then, how many are
// made in a second, and how evenly they are shared: how far the last session was when
// the first one was through.
func (r rig) active() (figures, error) {
	out := figures{}
	return out, r.with(func(p *process) error {
		all := make([]*session, r.options.active)
		for i := range all {
			s, err := p.open("session.create", newID(), r.model, false)
			if err != nil {
				return err
			}
			if _, err := s.ask("say warm"); err != nil {
				return err
			}
			all[i] = s
		}
		settle()
		turns := make([]time.Duration, 0, len(all)*r.options.turns)
		done := make([]atomic.Int64, len(all))
		var (
			mu      sync.Mutex
			first   sync.Once
			least   int64
			failure error
			wait    sync.WaitGroup
		)
		begin := time.Now()
		for i, s := range all {
			wait.Go(func() {
				for range r.options.turns {
					d, err := s.ask("say hello")
					mu.Lock()
					turns = append(turns, d)
					if err != nil && failure == nil {
						failure = fmt.Errorf("session %d: %w", i, err)
					}
					mu.Unlock()
					if err != nil {
						return
					}
					done[i].Add(1)
				}
				first.Do(func() {
					least = done[i].Load()
					for j := range done {
						least = min(least, done[j].Load())
					}
				})
			})
		}
		wait.Wait()
		took := time.Since(begin)
		if failure != nil {
			return failure
		}
		slices.Sort(turns)
		out["turn_ms_p50"], out["turn_ms_p99"] = ms(turns[len(turns)/2]), ms(turns[len(turns)*99/100])
		out["turn_ms_max"] = ms(turns[len(turns)-1])
		out["turns_per_s"] = float64(len(turns)) / took.Seconds()
		out["least_done_percent"] = 100 * float64(least) / float64(r.options.turns)
		return nil
	})
}
