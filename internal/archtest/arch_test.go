package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/transom-run/transom"

// file is one parsed Go file of the module.
type file struct {
	name string // relative to the module's root, with slashes
	pkg  string // directory relative to the root; "." for the root package
	test bool
	ast  *ast.File
	fset *token.FileSet
	src  string
}

// parse reads every Go file of the module. Nested modules are other programs.
func parse(t *testing.T) []file {
	t.Helper()
	root := "../.."
	var out []file
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			name := d.Name()
			if rel != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil && rel != "." {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(fset, rel, src, parser.ParseComments)
		if err != nil {
			return err
		}
		out = append(out, file{rel, path.Dir(rel), strings.HasSuffix(rel, "_test.go"), f, fset, string(src)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 50 {
		t.Fatalf("found only %d Go files: the walk is broken", len(out))
	}
	return out
}

// layers orders the rooms. A package may import packages of lower layers, and
// those of its own layer only where they are in the same room.
var layers = []struct {
	prefix string
	level  int
}{
	{"cmd", 8},
	{"conformance", 8},
	{"bench", 8},
	{"internal/cli", 7},
	{"server", 7},
	{"remote", 6},
	{".", 5},
	{"internal/session", 4},
	{"internal/turn", 3},
	{"internal/plugin", 3},
	{"internal/window", 2},
	{"internal/history", 2},
	{"internal/preimage", 2},
	{"internal/policy", 2},
	{"internal/builtin", 2},
	{"internal/prompt", 2},
	{"internal/agents", 2},
	{"mcp", 2},
	{"internal/skill", 2},
	{"model", 1},
	{"tool", 1},
	{"eventlog", 1},
	{"event", 0},
	{"sessionfs", 0},
	{"trace", 0},
	{"telemetry", 1},
	{"internal/jsonstring", -1},
	{"internal/jsonrpc2", 0},
	{"internal/shell", 0},
	{"internal/hookfile", 1},
	{"internal/picture", 0},
	{"internal/cron", 0},
	{"internal/vault", 0},
	{"internal/factory", 0},
	{"internal/extension", 0},
	{"internal/lazy", -1},
	{"internal/stack", -1},
	{"internal/archtest", 9},
	{"internal/testkit", 9},
	{"internal/durability", 9},
	{"internal/stress", 9},
}

func layer(pkg string) (room string, level int, ok bool) {
	for _, l := range layers {
		if pkg == l.prefix || l.prefix != "." && strings.HasPrefix(pkg, l.prefix+"/") {
			return l.prefix, l.level, true
		}
	}
	return "", 0, false
}

func TestImportsGoDown(t *testing.T) {
	for _, f := range parse(t) {
		room, level, ok := layer(f.pkg)
		if !ok {
			t.Errorf("%s: package %s has no layer: give it one in this test", f.name, f.pkg)
			continue
		}
		if f.test {
			continue // a test may use what stands above, such as a test kit
		}
		for _, imp := range f.ast.Imports {
			p, _ := strconv.Unquote(imp.Path.Value)
			if p != module && !strings.HasPrefix(p, module+"/") {
				continue
			}
			target := strings.TrimPrefix(strings.TrimPrefix(p, module), "/")
			if target == "" {
				target = "."
			}
			toRoom, toLevel, _ := layer(target)
			if toRoom != room && toLevel >= level {
				t.Errorf("%s imports %s: imports go strictly downward (layer %d to %d)", f.name, target, level, toLevel)
			}
		}
	}
}

// banned imports, with the reason.
var banned = []struct{ pkg, imp, why string }{
	{"internal/turn", "sync/atomic", "the core is pure: it shares nothing"},
	{"internal/turn", "context", "the core is pure: nothing in it waits"},
	{"internal/turn", "os", "the core is pure: no I/O"},
	{"internal/turn", "log/slog", "the core is pure: what it has to say is an event"},
	{"internal/turn", "math/rand", "the core is pure: ids come with the input"},
	{"internal/turn", "math/rand/v2", "the core is pure: ids come with the input"},
	{"internal/turn", "crypto/rand", "the core is pure: ids come with the input"},
	{"internal/window", "os", "the fold is pure"},
	{"internal/window", "time", "the fold is pure"},
	{"internal/policy", "os", "decisions are pure"},
	{"internal/policy", "time", "decisions are pure"},
	{"internal/jsonrpc2", "log/slog", "a library room returns errors, it does not log them"},
	{"server", module + "/internal/turn", "the server uses the public API only: whoever embeds the library can do what the binary can"},
	{"server", module + "/internal/session", "the server uses the public API only"},
	{"server", module + "/internal/window", "the server uses the public API only"},
}

func TestBannedImports(t *testing.T) {
	for _, f := range parse(t) {
		if f.test {
			continue
		}
		for _, imp := range f.ast.Imports {
			p, _ := strconv.Unquote(imp.Path.Value)
			for _, b := range banned {
				if b.why != "" && p == b.imp && (f.pkg == b.pkg || strings.HasPrefix(f.pkg, b.pkg+"/")) {
					t.Errorf("%s imports %s: %s", f.name, p, b.why)
				}
			}
			if last := path.Base(p); strings.HasPrefix(p, module) && (last == "util" || last == "common" || last == "types" || last == "helpers" || last == "manager") {
				t.Errorf("%s imports %s: a package's name says what it is about", f.name, p)
			}
		}
	}
}

// TestBannedCalls finds calls that break a rule of the house.
func TestBannedCalls(t *testing.T) {
	for _, f := range parse(t) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			at := f.fset.Position(call.Pos())
			switch name := x.Name + "." + sel.Sel.Name; {
			case name == "time.Sleep" && f.test:
				t.Errorf("%s: a test never sleeps: wait for what it waits for", at)
			case name == "time.Now" && f.pkg == "internal/turn" && !f.test:
				t.Errorf("%s: the core has no clock: the time comes with the input", at)
			case (name == "fmt.Println" || name == "fmt.Printf" || name == "log.Printf") && !f.test && !strings.HasPrefix(f.pkg, "cmd") && !strings.HasPrefix(f.pkg, "conformance") && !strings.HasPrefix(f.pkg, "internal/cli"):
				t.Errorf("%s: %s: stdout belongs to the protocol; return errors, log with slog at the top", at, name)
			}
			return true
		})
	}
}

func TestPackageDocs(t *testing.T) {
	docs := map[string]int{}
	seen := map[string]bool{}
	for _, f := range parse(t) {
		if f.test {
			continue
		}
		seen[f.pkg] = true
		if f.ast.Doc != nil {
			docs[f.pkg]++
			if text := f.ast.Doc.Text(); f.ast.Name.Name != "main" && !strings.HasPrefix(text, "Package "+f.ast.Name.Name) {
				t.Errorf("%s: the package comment begins with %q", f.name, "Package "+f.ast.Name.Name)
			}
		}
	}
	for pkg := range seen {
		if docs[pkg] != 1 {
			t.Errorf("package %s has %d package comments, not one", pkg, docs[pkg])
		}
	}
}

const (
	maxFile = 600
	maxFunc = 80
)

// long lists what is longer than the rule allows, with the reason. It only ever
// gets shorter.
var long = map[string]string{}

func TestSizes(t *testing.T) {
	for _, f := range parse(t) {
		base := path.Base(f.name)
		if strings.HasPrefix(base, "z") {
			continue // generated
		}
		if n := strings.Count(f.src, "\n"); n > maxFile && !f.test && long[f.name] == "" {
			t.Errorf("%s has %d lines, more than %d: split it", f.name, n, maxFile)
		}
		if f.test {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			n := f.fset.Position(fn.End()).Line - f.fset.Position(fn.Pos()).Line + 1
			if key := fmt.Sprintf("%s:%s", f.name, fn.Name.Name); n > maxFunc && long[key] == "" {
				t.Errorf("%s: %s has %d lines, more than %d: split it", f.fset.Position(fn.Pos()), fn.Name.Name, n, maxFunc)
			}
		}
	}
}

// TestExportedDocs: every exported symbol of a public package says what it is.
func TestExportedDocs(t *testing.T) {
	for _, f := range parse(t) {
		if f.test || strings.HasPrefix(path.Base(f.name), "z") || f.ast.Name.Name == "main" {
			continue
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
					t.Errorf("%s: %s has no comment", f.fset.Position(d.Pos()), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					ts, ok := s.(*ast.TypeSpec)
					if ok && ts.Name.IsExported() && ts.Doc == nil && d.Doc == nil {
						t.Errorf("%s: %s has no comment", f.fset.Position(ts.Pos()), ts.Name.Name)
					}
				}
			}
		}
	}
}

// exportedReceiver reports whether a function is one that users can see: methods
// that satisfy error and the like need no words.
func exportedReceiver(d *ast.FuncDecl) bool {
	switch d.Name.Name {
	case "Error", "String", "Unwrap", "Is", "As":
		return false
	}
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	e := d.Recv.List[0].Type
	if s, ok := e.(*ast.StarExpr); ok {
		e = s.X
	}
	if ix, ok := e.(*ast.IndexExpr); ok {
		e = ix.X
	}
	id, ok := e.(*ast.Ident)
	return ok && id.IsExported()
}
