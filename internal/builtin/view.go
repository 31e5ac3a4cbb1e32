package builtin

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sort"
	"strings"

	"github.com/transom-run/transom/internal/picture"
	"github.com/transom-run/transom/tool"
)

const (
	// maxView is the size up to which a file is shown unless more is asked for,
	// line numbers included: what the rest of the runtime lets pass uncut, less
	// the note that says how to go on.
	maxView = tool.MaxResultBytes - 512
	// maxForced is the size up to which a file is read at all.
	maxForced = 10 << 20
	// maxEntries is how many names of a directory are shown.
	maxEntries = 1000
)

const viewSchema = `{
 "type": "object",
 "properties": {
  "path": {"type": "string", "description": "The file or directory. Relative paths start at the working directory."},
  "view_range": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2, "description": "First and last line, from 1; -1 as the last is the end of the file."},
  "forceReadLargeFiles": {"type": "boolean", "description": "Show a large file whole."}
 },
 "required": ["path"]
}`

type viewArgs struct {
	Path  string `json:"path"`
	Range []int  `json:"view_range"`
	Force bool   `json:"forceReadLargeFiles"`
}

func (s *Set) view() tool.Tool {
	return tool.Tool{
		Name: "view", Parameters: json.RawMessage(viewSchema),
		Permission: func(_ context.Context, call tool.Call) (tool.Permission, error) {
			var a viewArgs
			if err := decode(call, &a); err != nil {
				return tool.Permission{}, err
			}
			path := s.abs(call, a.Path)
			if s.kept(path) {
				return askKept(path)
			}
			s.plans.put(call.ID, plan{resolved: resolve(path)})
			return s.askRead(call, "View "+valid(path), path)
		},
		Handler: func(ctx context.Context, call tool.Call) (tool.Result, error) {
			var a viewArgs
			if err := decode(call, &a); err != nil {
				return tool.Result{}, err
			}
			path := s.abs(call, a.Path)
			if s.kept(path) {
				return s.viewKept(ctx, path, a)
			}
			resolved := resolve(path)
			if p, asked := s.plans.take(call.ID); asked && p.resolved != resolved {
				return failure("%s leads elsewhere than when the call was approved.", path)
			}
			info, err := os.Stat(resolved)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return failure("%s", pathMissing(path))
			case err != nil:
				return failure("%s cannot be read: %v", path, cause(err))
			case info.IsDir():
				return viewDir(path, resolved)
			case !info.Mode().IsRegular():
				return failure("%s is not a file or a directory (%s).", path, info.Mode().Type())
			}
			return viewFile(ctx, path, resolved, info.Size(), a)
		},
	}
}

// kept reports whether a path is that of a file of the session which its host keeps.
func (s *Set) kept(path string) bool { return s.cfg.Kept != nil && s.cfg.Kept.Has(path) }

// askKept is the question about reading one: it is the session's own.
func askKept(path string) (p tool.Permission, err error) {
	p.Request, err = json.Marshal(readRequest{Kind: "read", Intention: "View " + valid(path), Path: valid(path), ResolvedPath: valid(path)})
	return p, err
}

func (s *Set) viewKept(ctx context.Context, path string, a viewArgs) (tool.Result, error) {
	text, err := s.cfg.Kept.Read(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failure("%s", pathMissing(path))
	case err != nil:
		return failure("%s cannot be read: %v", path, err)
	}
	return viewText(path, text, a)
}

// cause is what went wrong with a file, without the path that is named already.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func viewDir(path, resolved string) (tool.Result, error) {
	entries, err := os.ReadDir(resolved)
	if err != nil {
		return failure("%s cannot be read: %v", path, cause(err))
	}
	if len(entries) == 0 {
		return success("(the directory is empty)")
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
		if e.IsDir() {
			names[i] += "/"
		}
	}
	sort.Strings(names)
	if more := len(names) - maxEntries; more > 0 {
		names = append(names[:maxEntries], fmt.Sprintf("[%d more entries; use glob to find the one you need]", more))
	}
	return success(strings.Join(names, "\n"))
}

func viewFile(ctx context.Context, path, resolved string, size int64, a viewArgs) (tool.Result, error) {
	f, err := os.Open(resolved)
	if err != nil {
		return failure("%s cannot be read: %v", path, cause(err))
	}
	defer f.Close()
	head := make([]byte, 8<<10)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return failure("%s cannot be read: %v", path, cause(err))
	}
	head = head[:n]
	if picture.Type(head) != "" {
		return viewImage(ctx, f, path, head, size)
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return failure("%s is a binary file of %d bytes; view shows text, directories and images.", path, size)
	}
	if size > maxForced {
		return failure("%s has %.1f MB, which is too much to view. Search it with grep, or cut out a part with a command.", path, float64(size)/(1<<20))
	}
	rest, err := io.ReadAll(io.LimitReader(f, maxForced))
	if err != nil {
		return failure("%s cannot be read: %v", path, cause(err))
	}
	return viewText(path, string(head)+string(rest), a)
}

// viewImage shows an image, made smaller where models take none of its size.
func viewImage(ctx context.Context, f io.Reader, path string, head []byte, size int64) (tool.Result, error) {
	if size > picture.MaxSource {
		return failure("The image %s has %.1f MB; at most %d MB can be shown. Make a smaller copy first.", path, float64(size)/(1<<20), picture.MaxSource>>20)
	}
	rest, err := io.ReadAll(io.LimitReader(f, picture.MaxSource))
	if err != nil {
		return failure("%s cannot be read: %v", path, cause(err))
	}
	fitted, mime, err := picture.Fit(ctx, append(head, rest...), picture.Limits{})
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, context.Cause(ctx)
	case err != nil:
		return failure("The image %s cannot be shown: %v.", path, err)
	}
	data := base64.StdEncoding.EncodeToString(fitted)
	return tool.Result{Text: viewedImage, Binary: []tool.Binary{{Data: data, MIMEType: mime, Type: "image", Description: imageAt(valid(path))}}}, nil
}

func viewText(path, text string, a viewArgs) (tool.Result, error) {
	lines := strings.Split(text, "\n")
	first, last := 1, len(lines)
	if len(a.Range) == 2 {
		first, last = a.Range[0], a.Range[1]
		if last == -1 || last > len(lines) {
			last = len(lines)
		}
		if first < 1 || first > len(lines) || last < first {
			return failure("The view_range [%d, %d] is not one of %s, which has %d lines.", a.Range[0], a.Range[1], path, len(lines))
		}
	}
	var b strings.Builder
	for n := first; n <= last; n++ {
		line := valid(numbered(n, strings.TrimSuffix(lines[n-1], "\r")))
		if !a.Force && b.Len()+len(line)+1 > maxView {
			return success(viewCut(&b, line, path, n, first, len(lines), len(text)))
		}
		if n > first {
			b.WriteByte('\n')
		}
		b.WriteString(line)
	}
	r, err := success(b.String())
	r.Whole = a.Force
	return r, err
}

// viewCut ends a view that has become too long, at line n. A first line that is
// too long alone is shown in part.
func viewCut(b *strings.Builder, line, path string, n, first, lines, size int) string {
	if n == first {
		b.WriteString(string(wholeEnd([]byte(line[:min(len(line), maxView)]))))
		return fmt.Sprintf("%s\n[Line %d of %s is longer than what is shown at once, and cut here. The file has %d lines, %.1f KB.]", b, n, path, lines, float64(size)/1024)
	}
	return fmt.Sprintf("%s\n[Cut here: %s has %d lines, %.1f KB. Go on with view_range [%d, …], search with grep, or set forceReadLargeFiles.]", b, path, lines, float64(size)/1024, n)
}
