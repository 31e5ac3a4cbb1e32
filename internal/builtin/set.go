package builtin

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/transom-run/transom/tool"
)

// Config says what the tools of one session work with. Only Dir is required.
type Config struct {
	// Dir is the session's working directory, absolute. It is asked at each call
	// that does not carry its own, so it may change.
	Dir func() string
	// ExtraDirs are further directories that the session may use, beside the
	// working directory; nil is none. Relative ones are below Dir.
	ExtraDirs func() []string
	// SessionDir is where the session keeps its files: the database and the
	// output of detached commands. "" keeps the database in memory, and refuses
	// to detach.
	SessionDir string
	// Kept are the session's own files where its host keeps them; nil: they are in
	// SessionDir. view reads them.
	Kept Kept

	// Home is the directory of Transom's own files, which no approval that lasts
	// covers changing; "" is none.
	Home string

	// Environ is the environment of commands before anything is taken out; nil
	// is that of this process.
	Environ []string
	// HideEnv names variables that commands must not see; nil hides none.
	HideEnv func(name string) bool
	// Secrets are values that commands must not see: a variable that holds one
	// is left out, whatever its name. Asked at each command.
	Secrets func() []string

	// HTTPClient fetches for web_fetch; nil is one of the package's own. Its
	// redirect policy is replaced.
	HTTPClient *http.Client
	// Logger gets what neither model nor host can be told; nil drops it.
	Logger *slog.Logger

	// BeforeWrite is told of every file that create and edit are about to
	// change, and can refuse. nil lets everything pass.
	BeforeWrite func(ctx context.Context, change Change) error

	// Database answers the sql tool; nil is a SQLite file in SessionDir.
	Database Database
	// NoDatabase leaves the sql tool out.
	NoDatabase bool
	// TodosChanged is called after each sql call that may have changed the tables
	// todos and todo_deps. It must not wait for a call of this session.
	TodosChanged func()

	// AskUser puts a question to a person; nil leaves ask_user out.
	AskUser func(ctx context.Context, call tool.Call, q Question) (Answer, error)
	// ExitPlan asks a person to approve a plan; nil leaves exit_plan_mode out.
	ExitPlan func(ctx context.Context, call tool.Call, p Plan) (PlanAnswer, error)
	// Complete is told that the model holds its task to be done; nil leaves
	// task_complete out.
	Complete func(ctx context.Context, call tool.Call, summary string) error

	// Grace is how long a command has between the request to end and its end by
	// force; 0 is two seconds.
	Grace time.Duration
}

// Kept is how a session's own files are read where its host keeps them.
type Kept interface {
	// Has reports whether an absolute path is that of such a file.
	Has(path string) bool
	// Read reads it; fs.ErrNotExist where there is none.
	Read(ctx context.Context, path string) (string, error)
}

// Change is a file before a tool writes to it.
type Change struct {
	// Path is absolute, with every symbolic link followed.
	Path string
	// Exists tells whether there is a file; Before is its contents and Mode its
	// permissions.
	Exists bool
	Before []byte
	Mode   os.FileMode
	// After is what the file will hold; Added and Removed count the lines in which
	// that differs.
	After          []byte
	Added, Removed int
}

// Set is the built-in tools of one session. Its methods may be called from any
// goroutine.
type Set struct {
	cfg     Config
	log     *slog.Logger
	client  *http.Client
	shells  shells
	plans   plans
	writing sync.Mutex // one change of a file at a time
	db      lazyDatabase
	close   sync.Once
}

// New makes the tools. It starts nothing and opens nothing: commands, the
// database and connections begin with the first call that needs them.
func New(cfg Config) (*Set, error) {
	if cfg.Dir == nil {
		return nil, errors.New("builtin: the configuration names no working directory: set Dir")
	}
	if cfg.Grace <= 0 {
		cfg.Grace = 2 * time.Second
	}
	s := &Set{cfg: cfg, log: cfg.Logger}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.client = fetchClient(cfg.HTTPClient)
	s.shells.init()
	s.db.open = s.openDatabase
	return s, nil
}

// Close ends every command that still runs, with everything it started, closes
// the database, and returns when all of it has ended. Calls that run are cut
// off; later ones fail.
func (s *Set) Close() error {
	var err error
	s.close.Do(func() {
		s.shells.closeAll(s.cfg.Grace)
		err = s.db.shut()
	})
	return err
}

// Tools lists the tools that this configuration offers, always in the same
// order: what models are told of stays equal byte for byte.
func (s *Set) Tools() []tool.Tool {
	list := []tool.Tool{
		s.bash(), s.readBash(), s.writeBash(), s.stopBash(), s.listBash(),
		s.view(), s.create(), s.edit(), s.webFetch(),
	}
	if !s.cfg.NoDatabase {
		list = append(list, s.sql())
	}
	list = append(list, s.grep(), s.glob())
	if s.cfg.AskUser != nil {
		list = append(list, s.askUser())
	}
	if s.cfg.ExitPlan != nil {
		list = append(list, s.exitPlanMode())
	}
	if s.cfg.Complete != nil {
		list = append(list, s.taskComplete())
	}
	for i := range list {
		t := &list[i]
		t.Source, t.Tolerant, t.Description = tool.BuiltIn, true, text(t.Name)
		handler := t.Handler
		t.Handler = func(ctx context.Context, call tool.Call) (tool.Result, error) {
			call.Name = t.Name
			return handler(ctx, call)
		}
	}
	return list
}

//go:embed *.md
var texts embed.FS

// text is what the model reads of a tool, the same for all sessions.
func text(name string) string {
	if t, ok := read.Load(name); ok {
		return t.(string)
	}
	b, err := texts.ReadFile(name + ".md")
	if err != nil {
		panic(fmt.Sprintf("builtin: the tool %s has no text: %v", name, err))
	}
	t, _ := read.LoadOrStore(name, strings.TrimSpace(string(b)))
	return t.(string)
}

var read sync.Map // name → what text read

// sessionFile is a path among the session's own files, whose directory is made.
func (s *Set) sessionFile(names ...string) (string, error) {
	if s.cfg.SessionDir == "" {
		return "", errors.New("this session keeps no files of its own")
	}
	path := filepath.Join(append([]string{s.cfg.SessionDir}, names...)...)
	return path, os.MkdirAll(filepath.Dir(path), 0o700)
}
