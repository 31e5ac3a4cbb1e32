// Command bench measures runtimes that speak the protocol from outside, as a
// host of the SDKs sees them: it launches each binary over stdio, gives it a
// scripted model server on loopback, and drives the same work through it. With
// two binaries it takes turns (A B A B …), so that what the machine does besides
// hits both; quote the ratio of one run, not a time alone.
//
//	go run ./bench -a ./transom                        # figures of one runtime
//	go run ./bench -a ./transom -b OTHER -rounds 5     # side by side
//	go run ./bench -a ./transom -only growth,held,logs # how costs grow
//
// The guard, which fails when allocations of the hot rooms grow, is
// bench/guard.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// figures are the results of one round of a scenario, by name. A name says its
// unit: start_ms, idle_mib, stream_us_per_delta.
type figures map[string]float64

// scenario is one kind of work.
type scenario struct {
	name string
	says string
	// asked scenarios run only when -only names them: they take minutes.
	asked bool
	run   func(rig) (figures, error)
}

var scenarios = []scenario{
	{"start", "process start to the first answer, and what an idle process holds", false, rig.start},
	{"turn", "create a session; a prompt to idle, the model answers at once", false, rig.turn},
	{"tools", "one round: a call of the host's tool and the next model request", false, rig.tools},
	{"stream", "one streamed delta, from the model server to the client", false, rig.stream},
	{"clear", "clearContext from a terminal tool, and from the prompt to idle after the seeded turn", false, rig.clear},
	{"sessions", "memory of a session held idle after one turn", false, rig.sessions},
	{"resume", "resume of a stored session in a new process", false, rig.resume},
	{"growth", "a turn after N turns, and after N turns and a clear", true, rig.growth},
	{"held", "memory per session with 100, 1,000 and 5,000 of them", true, rig.held},
	{"active", "500 sessions that run turns at once", true, rig.active},
	{"logs", "resume of logs of 1, 10, 100 and 600 MB that end soon after a clear", true, rig.logs},
}

// options are the sizes of the work.
type options struct {
	turns, rounds, deltas, history, sessions, stored, active int
}

func main() {
	a := flag.String("a", "", "runtime A, an executable")
	b := flag.String("b", "", "runtime B to compare with; may be left out")
	only := flag.String("only", "", "scenarios, separated by commas; those that take seconds where empty")
	repeat := flag.Int("rounds", 3, "rounds of each scenario")
	var o options
	flag.IntVar(&o.turns, "turns", 30, "turn, active: prompts")
	flag.IntVar(&o.active, "active", 500, "active: sessions")
	flag.IntVar(&o.rounds, "tool-rounds", 50, "tools: rounds in one turn")
	flag.IntVar(&o.deltas, "deltas", 5000, "stream: deltas of the answer")
	flag.IntVar(&o.history, "history", 50, "clear: turns before it")
	flag.IntVar(&o.sessions, "sessions", 50, "sessions: how many")
	flag.IntVar(&o.stored, "stored-turns", 200, "resume: turns in the log")
	flag.Usage = usage
	flag.Parse()
	if *a == "" {
		usage()
		os.Exit(2)
	}
	if err := run(*a, *b, *only, *repeat, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprint(os.Stderr, "usage: go run ./bench -a RUNTIME [-b OTHER] [flags]\n\nscenarios:\n")
	for _, s := range scenarios {
		note := ""
		if s.asked {
			note = " (only when named)"
		}
		fmt.Fprintf(os.Stderr, "  %-9s %s%s\n", s.name, s.says, note)
	}
	fmt.Fprintln(os.Stderr, "\nflags:")
	flag.PrintDefaults()
}

func run(a, b, only string, repeat int, o options) error {
	chosen := choose(only)
	if len(chosen) == 0 {
		return fmt.Errorf("no scenario is called %q; -h lists them", only)
	}
	m, err := serveModel()
	if err != nil {
		return err
	}
	defer m.close()
	binaries := []string{a}
	if b != "" {
		binaries = append(binaries, b)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "scenario\tfigure\tA min/median/max\tB min/median/max\tA/B")
	for _, s := range chosen {
		all := make([]map[string][]float64, len(binaries))
		for round := range repeat {
			for i, bin := range binaries {
				fmt.Fprintf(os.Stderr, "\r%-60s\r", fmt.Sprintf("%s %c %d/%d", s.name, 'A'+i, round+1, repeat))
				f, err := s.run(rig{bin: bin, model: m, options: o})
				if err != nil {
					return fmt.Errorf("%s of %s, round %d: %w", s.name, bin, round+1, err)
				}
				if all[i] == nil {
					all[i] = map[string][]float64{}
				}
				for k, v := range f {
					all[i][k] = append(all[i][k], v)
				}
			}
		}
		report(w, s.name, all)
	}
	return w.Flush()
}

func choose(only string) []scenario {
	var out []scenario
	for _, s := range scenarios {
		if only == "" && !s.asked || only != "" && slices.Contains(strings.Split(only, ","), s.name) {
			out = append(out, s)
		}
	}
	return out
}

func report(w *tabwriter.Writer, name string, all []map[string][]float64) {
	var names []string
	for k := range all[0] {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		cells := []string{name, k}
		for _, f := range all {
			cells = append(cells, spread(f[k]))
		}
		if len(all) == 2 && len(all[1][k]) > 0 {
			cells = append(cells, fmt.Sprintf("%.3f", median(all[0][k])/median(all[1][k])))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
}

func spread(v []float64) string {
	if len(v) == 0 {
		return "–"
	}
	v = slices.Sorted(slices.Values(v))
	return fmt.Sprintf("%.3g / %.3g / %.3g", v[0], median(v), v[len(v)-1])
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
