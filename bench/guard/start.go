package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const module = "github.com/transom-run/transom"

// noted is how many bytes a package may allocate while it is set up before it has a
// line of its own.
const noted = 1 << 10

// starting builds the binary and measures what its packages allocate before main
// begins, in every process, whatever it then does. Packages of the standard library
// are left out: what they do depends on the machine and on the version of Go.
//
//	start/packages   how many packages of the module have something to do at all
//	start/all        what all packages allocate, those of dependencies included
//	start/PACKAGE    what one allocates that allocates more than a little
func starting() (map[string]cost, []string, error) {
	dir, err := os.MkdirTemp("", "guard")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "transom")
	build := exec.Command("go", "build", "-o", bin, "./cmd/transom")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, nil, fmt.Errorf("building transom: %w", err)
	}
	version := exec.Command(bin, "version")
	version.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace bytes.Buffer
	version.Stderr = &trace
	if err := version.Run(); err != nil {
		return nil, nil, fmt.Errorf("transom version: %w\n%s", err, &trace)
	}
	return inits(&trace)
}

// inits reads lines such as
//
//	init example.org/some/package @1.2 ms, 0.013 ms clock, 4096 bytes, 9 allocs
func inits(trace *bytes.Buffer) (map[string]cost, []string, error) {
	const own, all = "start packages", "start all"
	out := map[string]cost{own: {}, all: {}}
	order := []string{own, all}
	for s := bufio.NewScanner(trace); s.Scan(); {
		var pkg string
		var at, took float64
		var c cost
		if n, _ := fmt.Sscanf(s.Text(), "init %s @%f ms, %f ms clock, %d bytes, %d allocs", &pkg, &at, &took, &c.bytes, &c.allocs); n < 5 {
			continue
		}
		host, _, _ := strings.Cut(pkg, "/")
		if !strings.Contains(host, ".") {
			continue // of the standard library
		}
		if pkg == module || strings.HasPrefix(pkg, module+"/") {
			out[own] = cost{allocs: out[own].allocs + 1}
		}
		out[all] = cost{out[all].allocs + c.allocs, out[all].bytes + c.bytes}
		if c.bytes >= noted {
			out["start "+pkg] = c
			order = append(order, "start "+pkg)
		}
	}
	if out[all].allocs == 0 {
		return nil, nil, fmt.Errorf("GODEBUG=inittrace=1 shows no package that is set up: its format has changed, see inits in bench/guard/start.go")
	}
	return out, order, nil
}
