package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/transom-run/transom/internal/builtin/markdown"
	"github.com/transom-run/transom/tool"
)

const (
	fetchTimeout   = 30 * time.Second
	maxRedirects   = 5
	maxFetched     = 5 << 20
	defaultExcerpt = 5000 // characters
)

const webFetchSchema = `{
 "type": "object",
 "properties": {
  "url": {"type": "string", "description": "An http or https URL."},
  "max_length": {"type": "integer", "minimum": 1, "description": "At most so many characters; 5000 by default."},
  "start_index": {"type": "integer", "minimum": 0, "description": "The character to begin at, to read on."},
  "raw": {"type": "boolean", "description": "The page as the server sent it, instead of its text."}
 },
 "required": ["url"]
}`

type fetchArgs struct {
	URL   string `json:"url"`
	Max   int    `json:"max_length"`
	Start int    `json:"start_index"`
	Raw   bool   `json:"raw"`
}

// fetchClient is the client of web_fetch, which looks at each redirect itself.
func fetchClient(given *http.Client) *http.Client {
	c := &http.Client{Timeout: fetchTimeout}
	if given != nil {
		*c = *given
	}
	c.Jar = nil
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

// parseURL reads a URL that may be fetched.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil:
		return nil, refused(fmt.Sprintf("%q is not a URL.", text))
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, refused(fmt.Sprintf("%q is not an http or https URL.", text))
	case u.Hostname() == "":
		return nil, refused(fmt.Sprintf("The URL %q names no host.", text))
	case strings.ContainsFunc(u.Hostname(), func(r rune) bool { return r <= ' ' || r > '~' }):
		// One name has many spellings there, and an approval is of one.
		return nil, refused(fmt.Sprintf("The host of %q has letters that are not ASCII: write it as it is asked for, xn--….", text))
	case u.User != nil:
		return nil, refused("The URL holds a user name or password: web_fetch sends none.")
	}
	u.Fragment = ""
	return u, nil
}

func (s *Set) webFetch() tool.Tool {
	return tool.Tool{
		Name: "web_fetch", Parameters: json.RawMessage(webFetchSchema),
		Permission: func(_ context.Context, call tool.Call) (tool.Permission, error) {
			var a fetchArgs
			if err := decode(call, &a); err != nil {
				return tool.Permission{}, err
			}
			u, err := parseURL(a.URL)
			if err != nil {
				return askNothing() // nothing will be fetched
			}
			return askURL(u, "Fetch "+u.String())
		},
		Handler: func(ctx context.Context, call tool.Call) (tool.Result, error) {
			var a fetchArgs
			if err := decode(call, &a); err != nil {
				return tool.Result{}, err
			}
			text, err := s.fetch(ctx, a)
			var r refused
			if errors.As(err, &r) {
				return failure("%s", string(r))
			}
			if err != nil {
				return tool.Result{}, err
			}
			return success(text)
		},
	}
}

func (s *Set) fetch(ctx context.Context, a fetchArgs) (string, error) {
	u, err := parseURL(a.URL)
	if err != nil {
		return "", err
	}
	for range maxRedirects + 1 {
		page, next, err := s.get(ctx, u)
		if err != nil {
			return "", err
		}
		if next == nil {
			return page.excerpt(a)
		}
		if !sameSite(u, next) {
			return fmt.Sprintf("%s redirects to another place: %s\nFetch that URL if it is what you want.", u, next), nil
		}
		u = next
	}
	return "", refused(fmt.Sprintf("%s redirects more than %d times.", a.URL, maxRedirects))
}

// sameSite reports whether a redirect stays where the approval was for: the same
// host and port, never from https to http.
func sameSite(from, to *url.URL) bool {
	if from.Scheme == to.Scheme {
		return strings.EqualFold(from.Host, to.Host)
	}
	return to.Scheme == "https" && strings.EqualFold(from.Hostname(), to.Hostname()) && from.Port() == "" && to.Port() == ""
}

// page is what a server sent.
type page struct {
	url  *url.URL
	kind string
	text string
	cut  bool
}

// get fetches one URL. A redirect is returned as the next one.
func (s *Set) get(ctx context.Context, u *url.URL) (*page, *url.URL, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, nil, refused(fmt.Sprintf("%s cannot be fetched: %v", u, err))
	}
	req.Header.Set("User-Agent", "transom")
	req.Header.Set("Accept", "text/html, text/markdown, text/plain, application/json;q=0.9, */*;q=0.5")
	resp, err := s.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, nil, refused(fmt.Sprintf("%s cannot be fetched: %v", u, err))
	}
	defer resp.Body.Close()
	if loc := resp.Header.Get("Location"); loc != "" && resp.StatusCode >= 300 && resp.StatusCode < 400 {
		next, err := u.Parse(loc)
		if err == nil {
			next, err = parseURL(next.String())
		}
		if err != nil {
			return nil, nil, refused(fmt.Sprintf("%s redirects to %q, which cannot be fetched.", u, loc))
		}
		return nil, next, nil
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, nil, refused(fmt.Sprintf("The server answered %s with %s.", u, resp.Status))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxFetched+1))
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		return nil, nil, refused(fmt.Sprintf("%s could not be read to its end: %v", u, err))
	}
	p := &page{url: u, cut: len(body) > maxFetched}
	body = body[:min(len(body), maxFetched)]
	return p, nil, p.read(body, resp.Header.Get("Content-Type"))
}

// read makes text of what the server sent.
func (p *page) read(body []byte, contentType string) error {
	if contentType == "" {
		contentType = http.DetectContentType(body)
	}
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind, _, _ = strings.Cut(contentType, ";")
	}
	p.kind = strings.ToLower(strings.TrimSpace(kind))
	textual := strings.HasPrefix(p.kind, "text/") || strings.HasSuffix(p.kind, "+json") || strings.HasSuffix(p.kind, "+xml")
	switch p.kind {
	case "application/json", "application/xml", "application/javascript", "application/x-ndjson", "application/yaml", "application/toml", "application/x-sh":
		textual = true
	}
	if !textual && (bytes.IndexByte(body, 0) >= 0 || !utf8.Valid(body)) {
		return refused(fmt.Sprintf("%s is not text but %s (%d bytes). Download it with a command if you need it.", p.url, p.kind, len(body)))
	}
	p.text = decodeText(body, params["charset"])
	return nil
}

// decodeText knows the encodings that pages still come in: UTF-8, UTF-16 with a
// byte order mark, and the Latin ones. Of any other what is not ASCII is lost.
func decodeText(body []byte, charset string) string {
	switch {
	case bytes.HasPrefix(body, []byte("\xef\xbb\xbf")):
		return valid(string(body[3:]))
	case bytes.HasPrefix(body, []byte("\xff\xfe")), bytes.HasPrefix(body, []byte("\xfe\xff")):
		units := make([]uint16, 0, len(body)/2)
		for i := 2; i+1 < len(body); i += 2 {
			a, b := body[i], body[i+1]
			if body[0] == 0xff {
				a, b = b, a
			}
			units = append(units, uint16(a)<<8|uint16(b))
		}
		return string(utf16.Decode(units))
	}
	switch strings.ToLower(charset) {
	case "iso-8859-1", "latin1", "windows-1252", "iso-8859-15":
		if !utf8.Valid(body) {
			runes := make([]rune, len(body))
			for i, c := range body {
				runes[i] = rune(c)
			}
			return string(runes)
		}
	}
	return valid(string(body))
}

// excerpt is the part of a page that was asked for.
func (p *page) excerpt(a fetchArgs) (string, error) {
	text := p.text
	if !a.Raw && (p.kind == "text/html" || p.kind == "application/xhtml+xml") {
		text = markdown.FromHTML([]byte(text), p.url)
	}
	if text == "" {
		return fmt.Sprintf("%s holds no text.", p.url), nil
	}
	runes := []rune(text)
	if a.Start >= len(runes) {
		return "", refused(fmt.Sprintf("The start_index %d is past the end: %s has %d characters.", a.Start, p.url, len(runes)))
	}
	most := a.Max
	if most <= 0 {
		most = defaultExcerpt
	}
	end := min(len(runes), a.Start+min(most, len(runes)))
	out := string(runes[a.Start:end])
	switch {
	case end < len(runes):
		out += fmt.Sprintf("\n\n[Characters %d to %d of %d. Read on with start_index %d.]", a.Start, end, len(runes), end)
	case p.cut:
		out += fmt.Sprintf("\n\n[The page is larger than %d MB; the rest was not fetched.]", maxFetched>>20)
	}
	return out, nil
}
