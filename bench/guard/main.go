// Command guard runs the benchmarks of the hot rooms and compares what they
// allocate with what was recorded last. It fails where a benchmark allocates
// clearly more, in number or in bytes, and where one is missing. It never looks
// at times: those depend on the machine.
//
//	go run ./bench/guard            # compare
//	go run ./bench/guard -record    # take today's figures as the recorded ones
//
// The figures are in bench/guard/recorded.txt: package, benchmark, allocations
// and bytes an operation. Lines of the package "start" are of no benchmark but of
// what is done in every process before main begins: see starting.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"text/tabwriter"
)

// rooms are the packages that are measured, and which of their benchmarks.
var rooms = []struct{ pkg, bench, times string }{
	{"./internal/jsonrpc2", "NotifyRaw|RoundTrip", "2000x"}, // frames out and in
	{"./event", "New", "2000x"},                             // event encoding
	{"./eventlog/filelog", "Append", "2000x"},               // log append
	{"./internal/session", "Fold|FanOut", "100x"},           // log to window, event to clients
	{"./model/openai", "Encode|Decode|Stream", "100x"},      // request building, stream decoding
	{"./model/responses", "Stream", "100x"},
	{"./model/anthropic", "Stream", "100x"},
	{"./tool", "Check|Answer|Run", "1000x"}, // arguments against a schema
	{".", "Turn|ToolRound|Delta|Resume", "50x"},
	{"./server", "Turn", "200x"}, // the whole way, client included
}

// A benchmark may take this much more than recorded before it is a regression:
// pools and the growth of buffers make small differences.
const (
	moreAllocs, fewAllocs = 1.15, 3
	moreBytes, fewBytes   = 1.30, 512
)

const file = "bench/guard/recorded.txt"

// cost is what one operation of a benchmark allocates.
type cost struct{ allocs, bytes int64 }

func main() {
	record := flag.Bool("record", false, "write the figures down instead of comparing")
	flag.Parse()
	if err := run(*record); err != nil {
		fmt.Fprintln(os.Stderr, "guard:", err)
		os.Exit(1)
	}
}

func run(record bool) error {
	now, order, err := measure()
	if err != nil {
		return err
	}
	began, packages, err := starting()
	if err != nil {
		return err
	}
	maps.Copy(now, began)
	order = append(order, packages...)
	if record {
		var b strings.Builder
		for _, name := range order {
			fmt.Fprintf(&b, "%s %d %d\n", name, now[name].allocs, now[name].bytes)
		}
		return os.WriteFile(file, []byte(b.String()), 0o644)
	}
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("%w; run this in the module's root", err)
	}
	defer f.Close()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer w.Flush()
	worse := 0
	recorded := map[string]bool{}
	for s := bufio.NewScanner(f); s.Scan(); {
		var pkg, name string
		var was cost
		if _, err := fmt.Sscan(s.Text(), &pkg, &name, &was.allocs, &was.bytes); err != nil {
			return fmt.Errorf("%s: %q is not a line of it: %w", file, s.Text(), err)
		}
		recorded[pkg+" "+name] = true
		is, ok := now[pkg+" "+name]
		verdict := "ok"
		if !ok {
			if pkg == "start" {
				continue // one dependency less
			}
			verdict = "MISSING"
		} else if pkg == "start" && name == "packages" && is.allocs > was.allocs || over(is.allocs, was.allocs, moreAllocs, fewAllocs) || over(is.bytes, was.bytes, moreBytes, fewBytes) {
			verdict = "WORSE"
		}
		if verdict != "ok" {
			worse++
		}
		fmt.Fprintf(w, "%s\t%s\t%d → %d allocs\t%d → %d B\t%s\n", pkg, name, was.allocs, is.allocs, was.bytes, is.bytes, verdict)
	}
	for _, name := range packages {
		if !recorded[name] {
			worse++
			fmt.Fprintf(w, "%s\t%d allocs\t%d B\tNEW\n", strings.Replace(name, " ", "\t", 1), now[name].allocs, now[name].bytes)
		}
	}
	if worse > 0 {
		return fmt.Errorf("%d benchmarks or packages allocate clearly more than recorded, are new at the start of every process, or are gone; mend them, or say why in the commit that runs -record", worse)
	}
	return nil
}

func over(is, was int64, factor float64, few int64) bool {
	return float64(is) > float64(was)*factor && is-was > few
}

// measure runs the benchmarks. The names in order are "package benchmark".
func measure() (map[string]cost, []string, error) {
	out := map[string]cost{}
	var order []string
	for _, r := range rooms {
		cmd := exec.Command("go", "test", "-run=^$", "-bench=^Benchmark("+r.bench+")", "-benchtime="+r.times, "-benchmem", r.pkg)
		cmd.Stderr = os.Stderr
		b, err := cmd.Output()
		if err != nil {
			return nil, nil, fmt.Errorf("benchmarks of %s: %w\n%s", r.pkg, err, b)
		}
		for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
			fields := strings.Fields(s.Text())
			if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
				continue
			}
			var c cost
			for i := 3; i < len(fields); i += 2 {
				n, _ := strconv.ParseFloat(fields[i-1], 64)
				switch fields[i] {
				case "allocs/op":
					c.allocs = int64(n)
				case "B/op":
					c.bytes = int64(n)
				}
			}
			name := fields[0] // ends with the number of processors
			if i := strings.LastIndexByte(name, '-'); i > 0 {
				name = name[:i]
			}
			name = r.pkg + " " + name
			out[name] = c
			order = append(order, name)
		}
	}
	return out, order, nil
}
