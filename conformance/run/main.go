// Command run plays the conformance cases: it starts a host program on each
// published SDK, lets it drive a runtime through every case, and compares what
// the host saw and what the model was shown with what must be.
//
//	go run ./conformance/run                     build ./cmd/transom, run all languages
//	go run ./conformance/run -lang go -case clear -v
//	go run ./conformance/run -bin /path/to/runtime
//
//	 cases/*.yaml ──▶ run ──── next case ───▶ host (Node.js, Go, …) ── SDK ──▶ runtime
//	                   ▲  ◀── observations ──                                    │
//	                   └───────────── the model's requests ◀─────────────────────┘
//
// Hosts report, the runner judges: no language has assertions of its own, so
// they cannot drift apart.
//
// # Ordering
//
// Languages run at the same time, the cases of one language one after another.
// Each case has its own runtime process, home directory and scripted model.
//
// # Errors
//
// The exit code is 1 if a case failed, 2 if the run itself could not be made.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

func main() {
	opts := options{}
	flag.StringVar(&opts.bin, "bin", "", "the runtime to test (default: build ./cmd/transom)")
	langs := flag.String("lang", "", "languages to run, separated by commas (default: all)")
	flag.StringVar(&opts.sdk, "sdk", "pinned", "versions of the SDKs: pinned, older, all, or one of the folders older/VERSION")
	flag.StringVar(&opts.cases, "case", "", "run only cases whose id matches this regular expression")
	flag.BoolVar(&opts.tcp, "tcp", false, "play over TCP what the cases play over stdio")
	flag.BoolVar(&opts.verbose, "v", false, "list every case with its time")
	flag.DurationVar(&watchdog, "timeout", watchdog, "how long one case may take")
	flag.Parse()
	if *langs != "" {
		opts.langs = strings.Split(*langs, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	failed, err := opts.run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	bin, cases   string
	sdk          string
	langs        []string
	tcp, verbose bool
}

func (o options) run(ctx context.Context) (failed int, err error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return 0, err
	}
	pattern, err := regexp.Compile(o.cases)
	if err != nil {
		return 0, fmt.Errorf("-case: %w", err)
	}
	suite, err := loadSuite(filepath.Join(root, "conformance", "cases"))
	if err != nil {
		return 0, err
	}
	if o.tcp {
		suite.overTCP()
	}
	langs, err := loadLanguages(filepath.Join(root, "conformance"), o.langs)
	if err == nil {
		langs, err = withVersions(langs, o.sdk)
	}
	if err == nil {
		err = suite.checkLacks(langs)
	}
	if err != nil {
		return 0, err
	}
	tmp, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(tmp)
	if o.bin == "" {
		o.bin, err = buildRuntime(ctx, root, tmp)
	} else {
		o.bin, err = filepath.Abs(o.bin)
	}
	if err != nil {
		return 0, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	mux := http.NewServeMux()
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()

	cols := make([]*column, len(langs))
	var all sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for i, lang := range langs {
		prefix := "/" + lang.Key
		books := &bookings{suite: suite, lang: lang, bin: o.bin, base: "http://" + listener.Addr().String() + prefix, tmp: filepath.Join(tmp, lang.Key)}
		books.sort(pattern)
		mux.Handle(prefix+"/", http.StripPrefix(prefix, books.handler()))
		all.Go(func() {
			places <- struct{}{}
			cols[i] = books.play(ctx)
			<-places
		})
	}
	all.Wait()
	_, failed = printTable(os.Stdout, suite, cols, o.verbose)
	return failed, ctx.Err()
}

// atOnce is how many languages run at the same time: more would only make the
// machine slow, and cases hit the watchdog.
const atOnce = 4

// bookings are the two desks of a language: one for its host, one for its
// example.
type bookings struct {
	suite          *Suite
	lang           *Language
	bin, base, tmp string
	host, example  *desk
	left           []leftOut
}

// sort puts each chosen case on its desk.
func (b *bookings) sort(pattern *regexp.Regexp) {
	var host, example []*Case
	for _, c := range b.suite.Cases {
		feature, reason := b.lang.cannot(b.suite.needs(c))
		switch {
		case !pattern.MatchString(c.ID) || b.lang.Refused != "":
		case feature != "":
			b.left = append(b.left, leftOut{c, feature, reason})
		case c.alone():
			example = append(example, c)
		default:
			host = append(host, c)
		}
	}
	b.host = newDesk(b.suite, b.lang, b.base+"/host", b.bin, b.tmp, host)
	b.example = newDesk(b.suite, b.lang, b.base+"/example", b.bin, b.tmp, example)
}

func (b *bookings) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/host/", http.StripPrefix("/host", b.host.handler()))
	mux.Handle("/example/", http.StripPrefix("/example", b.example.handler()))
	return mux
}

// play prepares the language and runs both desks.
func (b *bookings) play(ctx context.Context) *column {
	col := &column{lang: b.lang, left: b.left}
	if program := b.lang.missing(); program != "" {
		col.notRun = program + " is not installed"
		return col
	}
	err := os.MkdirAll(b.tmp, 0o700)
	if err == nil {
		err = b.lang.prepare(ctx, b.tmp)
	}
	if errors.Is(err, errAbsent) {
		col.notRun = err.Error()
		return col
	}
	if err == nil && b.lang.Refused != "" {
		col.notRun, err = b.example.playRefused(ctx)
	}
	for err == nil && len(b.example.queue) > 0 {
		b.example.playExample(ctx)
	}
	if err == nil {
		err = b.host.play(ctx)
	}
	if err != nil {
		// What could not even be started fails: it must not look like a
		// language whose toolchain is missing.
		col.broken = err
		for _, c := range append(b.example.queue, b.host.queue...) {
			b.host.runs = append(b.host.runs, &run{c: c, lang: b.lang, errs: []error{errNotStarted}})
		}
	}
	col.runs = append(b.example.runs, b.host.runs...)
	return col
}

// errNotStarted stands for a case whose host could not be built or run; the
// reason is printed once for the language.
var errNotStarted = errors.New("not started")

// moduleRoot finds the directory of the module this is run in.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	path := strings.TrimSpace(string(out))
	if err != nil || path == "" || path == os.DevNull {
		return "", fmt.Errorf("run this inside the transom module (go env GOMOD: %q, %v)", path, err)
	}
	return filepath.Dir(path), nil
}
