package prompt

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/picture"
)

// attachment is one of a message's, as hosts give it. The fields of all types are
// in one.
type attachment struct {
	Type string `json:"type"`

	Path        string `json:"path"` // file, directory
	DisplayName string `json:"displayName"`
	LineRange   *struct {
		Start int `json:"start"`
		End   int `json:"end"`
	} `json:"lineRange"`

	FilePath  string `json:"filePath"` // selection
	Text      string `json:"text"`
	Selection struct {
		Start struct {
			Line int `json:"line"` // from 0
		} `json:"start"`
		End struct {
			Line int `json:"line"`
		} `json:"end"`
	} `json:"selection"`

	Data     string `json:"data"` // blob: base64
	MIMEType string `json:"mimeType"`

	Number        int64  `json:"number"` // github_reference
	ReferenceType string `json:"referenceType"`
	State         string `json:"state"`
	Title         string `json:"title"`
	URL           string `json:"url"`
}

const (
	// maxCounted is how much of an attached file is read to count its lines.
	maxCounted = 16 << 20
	// maxInline is how long the text of one attachment may be in a prompt.
	maxInline = 256 << 10
)

// Attached is what a model reads of a message's attachments.
type Attached struct {
	Lead, Trail string // around the prompt
	// Images are what attached files hold, within the limits that models have
	// commonly.
	Images []event.AttachedImage
}

// Attach makes what a model reads of attachments. Relative paths start at dir. The
// attachments themselves stay with the message; images and PDF documents of theirs
// go to the model with it, and are not named here. An error says which attachment
// is none, or that ctx has ended.
func Attach(ctx context.Context, dir string, raw []json.RawMessage) (read Attached, err error) {
	var before, tagged, references, rest []string
	for i, r := range raw {
		var a attachment
		if err := json.Unmarshal(r, &a); err != nil {
			return read, &ConfigError{fmt.Sprintf("attachments[%d] is not an attachment: %v", i, err)}
		}
		switch a.Type {
		case "":
			return read, &ConfigError{fmt.Sprintf("attachments[%d] has no type, such as file, directory, selection or blob", i)}
		case "file", "directory":
			if a.Path == "" {
				return read, &ConfigError{fmt.Sprintf("attachments[%d] is a %s without a path", i, a.Type)}
			}
			image, tag, err := a.file(ctx, dir)
			if err != nil {
				return read, err
			}
			if image != nil {
				read.Images = append(read.Images, *image)
			} else {
				tagged = append(tagged, tag)
			}
		case "selection":
			before = append(before, a.selection())
		case "github_reference":
			references = append(references, fmt.Sprintf("#%d - %s [%s] [%s] (%s)", a.Number, line(a.Title), line(a.ReferenceType), line(a.State), line(a.URL)))
		case "blob":
			text, err := a.blob()
			if err != nil {
				return read, &ConfigError{fmt.Sprintf("attachments[%d] (%s): %v", i, a.name(), err)}
			}
			if text != "" {
				rest = append(rest, text)
			}
		default:
			rest = append(rest, a.other(r))
		}
	}
	read.Lead, read.Trail = around(before, tagged, references, rest)
	return read, nil
}

// around lays out what stands before a prompt and after it.
func around(before, tagged, references, rest []string) (lead, trail string) {
	for _, s := range before {
		lead += s + "\n\n"
	}
	var blocks []string
	if len(tagged) > 0 {
		blocks = append(blocks, "<tagged_files>\n"+strings.Join(tagged, "\n")+"\n</tagged_files>")
	}
	if len(references) > 0 {
		blocks = append(blocks, "<github_references>\n"+strings.Join(references, "\n")+"\n</github_references>")
	}
	if blocks = append(blocks, rest...); len(blocks) > 0 {
		trail = "\n\n\n\n" + strings.Join(blocks, "\n\n")
	}
	return strings.ToValidUTF8(lead, "\ufffd"), strings.ToValidUTF8(trail, "\ufffd")
}

// line is a text on one line.
func line(s string) string { return strings.Join(strings.Fields(s), " ") }

func (a *attachment) name() string {
	for _, s := range []string{a.DisplayName, a.FilePath, a.Path} {
		if s != "" {
			return line(s)
		}
	}
	return "attachment"
}

// file is what a model is shown of a file or directory: the image it holds, or the
// entry that tells of it. Recordings pin the entry's form (tests "session" and
// "session_config" of the SDKs).
func (a *attachment) file(ctx context.Context, dir string) (*event.AttachedImage, string, error) {
	path := a.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	note := ""
	if a.Type == "file" && a.LineRange == nil {
		image, err := readImage(ctx, path)
		switch {
		case ctx.Err() != nil:
			return nil, "", context.Cause(ctx)
		case image != nil:
			return image, "", nil
		case err != nil:
			note = ": an image that is not shown, for " + line(err.Error())
		}
	}
	return nil, fmt.Sprintf("* %s (%s%s)", line(path), a.extent(path), note), nil
}

// readImage reads the image in a file; nil where the file holds none. An error says
// why an image cannot be shown.
func readImage(ctx context.Context, path string) (*event.AttachedImage, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) || picture.Type(head[:n]) == "" {
		return nil, nil
	}
	if info.Size() > picture.MaxSource {
		return nil, fmt.Errorf("it has %d MB, more than the %d that can be read", info.Size()>>20, picture.MaxSource>>20)
	}
	rest, err := io.ReadAll(io.LimitReader(f, picture.MaxSource))
	if err != nil {
		return nil, errors.New("it cannot be read")
	}
	data, mime, err := picture.Fit(ctx, append(head[:n], rest...), picture.Limits{})
	if err != nil {
		return nil, err
	}
	return &event.AttachedImage{Name: line(path), MIMEType: mime, Data: base64.StdEncoding.EncodeToString(data)}, nil
}

func (a *attachment) extent(path string) string {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "does not exist"
	case err != nil:
		return "cannot be read"
	case info.IsDir():
		entries, err := os.ReadDir(path)
		if err != nil {
			return "cannot be read"
		}
		return fmt.Sprintf("%d items", len(entries))
	case !info.Mode().IsRegular():
		return "is no file"
	case info.Size() > maxCounted:
		return fmt.Sprintf("%d MB", info.Size()>>20)
	}
	f, err := os.Open(path)
	if err != nil {
		return "cannot be read"
	}
	defer f.Close()
	n, text, err := countLines(f)
	switch r := a.LineRange; {
	case err != nil:
		return "cannot be read"
	case !text:
		return fmt.Sprintf("%d bytes, not text", info.Size())
	case r == nil:
		return fmt.Sprintf("%d lines", n)
	case r.Start == r.End:
		return fmt.Sprintf("line %d of %d lines", r.Start, n)
	default:
		return fmt.Sprintf("lines %d-%d of %d lines", r.Start, r.End, n)
	}
}

// countLines counts the lines of a text; one without a line feed at its end counts
// too.
func countLines(r io.Reader) (n int, text bool, err error) {
	buf := make([]byte, 64<<10)
	last := byte('\n')
	for {
		k, err := r.Read(buf)
		if bytes.IndexByte(buf[:k], 0) >= 0 {
			return 0, false, nil
		}
		n += bytes.Count(buf[:k], []byte{'\n'})
		if k > 0 {
			last = buf[k-1]
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, false, err
		}
	}
	if last != '\n' {
		n++
	}
	return n, true, nil
}

// selection is what a user has marked in an editor. Recordings pin its form (test
// "session" of the SDKs).
func (a *attachment) selection() string {
	where := fmt.Sprintf("line %d", a.Selection.Start.Line+1)
	if end := a.Selection.End.Line; end > a.Selection.Start.Line {
		where = fmt.Sprintf("lines %d-%d", a.Selection.Start.Line+1, end+1)
	}
	fence := "```"
	for strings.Contains(a.Text, fence) {
		fence += "`"
	}
	return "<ide_selection>\nThe user has the following text selected in their IDE. This may or may not be related to their request.\n" +
		"File: " + a.name() + " (" + where + ")\n" + fence + "\n" + a.Text + "\n" + fence + "\n</ide_selection>"
}

// blob is what stands in the prompt of a file that came with the message: text
// itself, and a remark on what no model can read.
func (a *attachment) blob() (string, error) {
	data, err := base64.StdEncoding.DecodeString(a.Data)
	if err != nil {
		return "", errors.New("its data is not base64")
	}
	switch {
	case len(data) == 0:
		return "", errors.New("it has no data")
	case strings.HasPrefix(a.MIMEType, "image/") && a.MIMEType != "image/svg+xml", a.MIMEType == "application/pdf":
		return "", nil
	}
	head := fmt.Sprintf("<attached_file name=%q type=%q", a.name(), a.MIMEType)
	switch {
	case !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0:
		return fmt.Sprintf("%s>\n(%d bytes that are not text: they cannot be shown.)\n</attached_file>", head, len(data)), nil
	case len(data) > maxInline:
		return "", fmt.Errorf("its text has %d bytes, more than the %d that a prompt takes: attach it as a file", len(data), maxInline)
	}
	return head + ">\n" + strings.TrimSuffix(string(data), "\n") + "\n</attached_file>", nil
}

// other is an attachment of a type that has no form of its own: the model reads
// what the host gave.
func (a *attachment) other(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil || b.Len() > maxInline {
		return fmt.Sprintf("<attachment type=%q>\n(too long to be shown)\n</attachment>", a.Type)
	}
	return fmt.Sprintf("<attachment type=%q>\n%s\n</attachment>", a.Type, b.String())
}

// LimitsStatus tells the model how much the session may still use. Recordings pin
// it (test "session_config" of the SDKs).
func LimitsStatus(credits float64) string {
	return "<session_limits_status>\nRemaining session limits: " + strconv.FormatFloat(credits, 'f', -1, 64) + " AI credits. Later session_limits_status messages supersede earlier ones. Be frugal; avoid optional exploration and unnecessary tool calls.\n</session_limits_status>"
}
