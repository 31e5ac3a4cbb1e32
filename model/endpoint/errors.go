package endpoint

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/transom-run/transom/internal/lazy"
	"github.com/transom-run/transom/model"
	"github.com/transom-run/transom/model/internal/wire"
)

const (
	maxErrorBody    = 64 << 10 // bytes read of an error's body
	maxErrorMessage = 600      // bytes of a server's message that are shown
)

// secretsOf lists what must not appear in an error: keys, passwords, and the
// values of headers that may be keys.
func secretsOf(cfg *Server, base *url.URL) []string {
	var out []string
	add := func(s string) {
		if len(s) >= 4 {
			out = append(out, s)
		}
	}
	add(cfg.APIKey)
	add(cfg.BearerToken)
	if base.User != nil {
		password, _ := base.User.Password()
		add(password)
	}
	for _, values := range base.Query() {
		for _, v := range values {
			if len(v) >= 12 {
				add(v)
			}
		}
	}
	for _, v := range cfg.Headers {
		if len(v) >= 12 {
			add(v)
			if _, token, ok := strings.Cut(v, " "); ok && len(token) >= 12 {
				add(token)
			}
		}
	}
	return out
}

// keyShapes are keys by their look: a server may quote one that is not ours.
var keyShapes = lazy.Regexp{Expr: `\b(?:sk|pk|rk)-[A-Za-z0-9_*-]{8,}|\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_[A-Za-z0-9_]{20,}|(?i:bearer) [A-Za-z0-9._~+/=-]{12,}`}

// clean makes a server's text fit to be shown.
func (a *Answer) clean(s string) string {
	if len(a.token) >= 4 {
		s = strings.ReplaceAll(s, a.token, "[redacted]")
	}
	for _, secret := range a.e.secrets {
		s = strings.ReplaceAll(s, secret, "[redacted]")
	}
	s = keyShapes.Get().ReplaceAllString(s, "[redacted]")
	s = strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "\uFFFD")
	if len(s) > maxErrorMessage {
		n := maxErrorMessage
		for !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + "…"
	}
	return s
}

func (a *Answer) newError(kind model.ErrorKind, format string, args ...any) *model.Error {
	return &model.Error{Kind: kind, Endpoint: a.shown, Msg: fmt.Sprintf(format, args...)}
}

// noToken is for a host that gave no bearer token.
func (a *Answer) noToken(err error) *model.Error {
	e := a.newError(model.Authentication, "The host gave no bearer token for the model endpoint %s: %s. Check the provider's bearerTokenProvider.", a.shown, strings.TrimRight(a.clean(err.Error()), "."))
	e.Err = err
	return e
}

// transportError is for a request that got no answer, or a broken one.
func (a *Answer) transportError(parent, ctx context.Context, err error) *model.Error {
	if cause := parent.Err(); cause != nil {
		e := a.newError(model.Query, "The request to %s was cancelled.", a.shown)
		e.Err = cause
		return e
	}
	e := a.newError(model.Query, "")
	e.Err, e.Retryable = err, true
	cause := context.Cause(ctx)
	switch {
	case cause == errHeaderTimeout:
		e.Err = cause
		e.Msg = fmt.Sprintf("The model endpoint %s did not begin to answer within %s. Check that it is up and can serve the model.", a.shown, a.e.cfg.HeaderTimeout)
	case cause == errIdleTimeout:
		e.Err = cause
		e.Msg = fmt.Sprintf("The model endpoint %s sent nothing for %s in the middle of its answer.", a.shown, a.e.cfg.IdleTimeout)
	case errors.Is(err, errTooLarge), errors.Is(err, wire.ErrLineTooLong):
		e.Retryable = false
		e.Msg = fmt.Sprintf("The answer of the model endpoint %s is longer than the limit of %d bytes.", a.shown, a.e.cfg.MaxResponse)
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Msg = fmt.Sprintf("The model endpoint %s ended its answer in the middle.", a.shown)
		var closed *ClosedError
		if errors.As(err, &closed) && closed.Reason != "" {
			e.Msg = fmt.Sprintf("The model endpoint %s ended its answer in the middle: %s.", a.shown, strings.TrimRight(a.clean(closed.Reason), "."))
		}
	default:
		var ue *url.Error // it holds the URL, with whatever stands in its query
		if errors.As(err, &ue) {
			err = ue.Err
			e.Err = err
		}
		check := "the base URL and that the server is running"
		var cert *tls.CertificateVerificationError
		switch {
		case errors.Is(err, errRedirect):
			e.Retryable, check = false, "the base URL"
		case errors.As(err, &cert):
			e.Retryable, check = false, "the server's certificate; SSL_CERT_FILE can name a file of trusted ones"
		}
		e.Msg = fmt.Sprintf("The model endpoint %s cannot be reached: %s. Check %s.", a.shown, a.clean(err.Error()), check)
	}
	return e
}

// statusError is for an answer with an error status.
func (a *Answer) statusError(resp *http.Response) *model.Error {
	body, _ := io.ReadAll(io.LimitReader(a.Body, maxErrorBody))
	said := parseError(body)
	kind, again := model.Classify(resp.StatusCode, said.code, said.message)
	e := a.failure(resp.StatusCode, kind, again, said)
	e.RetryAfter = retryAfter(resp.Header, time.Now())
	// Some servers know better than any table.
	switch resp.Header.Get("X-Should-Retry") {
	case "true":
		e.Retryable = true
	case "false":
		e.Retryable = false
	}
	return e
}

// failure words an error of a server.
func (a *Answer) failure(status int, kind model.ErrorKind, again bool, said saidError) *model.Error {
	e := &model.Error{Kind: kind, Status: status, Code: a.clean(said.code), Endpoint: a.shown, Retryable: again}
	because := ""
	if said.message != "" {
		because = ": " + strings.TrimRight(a.clean(said.message), ".")
	}
	on := fmt.Sprintf("(HTTP %d)%s.", status, because)
	if status == 0 {
		on = "in its answer" + because + "."
	}
	switch {
	case kind == model.Authentication && status == 403:
		e.Msg = fmt.Sprintf("The model endpoint %s denied access %s Check that the key may use this model: %s.", a.shown, on, a.e.cfg.Credentials)
	case kind == model.Authentication:
		e.Msg = fmt.Sprintf("Authentication failed with the model endpoint %s %s Check the API key: %s.", a.shown, on, a.e.cfg.Credentials)
	case kind == model.Quota:
		e.Msg = fmt.Sprintf("The quota at the model endpoint %s is used up %s Check plan and billing there.", a.shown, on)
	case kind == model.RateLimit:
		e.Msg = fmt.Sprintf("The model endpoint %s limits the rate of requests %s", a.shown, on)
	case kind == model.ContextLimit:
		e.Msg = fmt.Sprintf("The conversation is too long for the model at %s %s Clear or compact it, or choose a model with a larger context window.", a.shown, on)
	case status == 404:
		e.Msg = fmt.Sprintf("The model endpoint %s was not found, or does not know the model %s Check the base URL and the model name.", a.shown, on)
	case again:
		e.Msg = fmt.Sprintf("The model endpoint %s failed %s", a.shown, on)
	default:
		e.Msg = fmt.Sprintf("The model endpoint %s refused the request %s", a.shown, on)
	}
	return e
}

// Failed is for an error inside an answer with status 200: raw is the error's own value, and whole what it
// stands in, which counts where raw is nil.
func (a *Answer) Failed(raw, whole []byte) *model.Error {
	said := parseError(whole)
	if raw != nil {
		status := said.status
		if said = parseErrorValue(raw); said.status == 0 {
			said.status = status
		}
	}
	kind, again := model.Classify(said.status, said.code, said.message)
	switch {
	case said.status != 0:
	case said.code == "rate_limit_exceeded" || said.kind == "rate_limit_error":
		kind, again = model.RateLimit, true
	case kind == model.Query:
		// Unless it blames the request, the server broke while it answered.
		again = !strings.HasPrefix(said.kind, "invalid_") && !strings.HasPrefix(said.code, "invalid_") && said.kind != "not_found_error"
	}
	return a.failure(said.status, kind, again, said)
}

// NotJSON is for an answer that cannot be read.
func (a *Answer) NotJSON(data []byte) *model.Error {
	e := a.newError(model.Query, "The model endpoint %s sent an answer that is not JSON: %q.", a.shown, a.clean(string(data[:min(len(data), 120)])))
	if len(data) == 0 {
		e.Msg = fmt.Sprintf("The model endpoint %s sent an empty answer.", a.shown)
	}
	e.Retryable = true
	return e
}

func (a *Answer) notTheWire(what string) *model.Error {
	return a.newError(model.Query, "The model endpoint %s answered with %s. Check the base URL: %s", a.shown, what, a.e.wire.Hint)
}

// Empty is for an answer without text and calls. Most are a hiccup of the
// server, and worth one more attempt; where the reason given rules that out they
// are not.
func (a *Answer) Empty(finish string, reasoned bool) *model.Error {
	e := a.newError(model.Query, "The model at %s sent an empty answer.", a.shown)
	e.Code, e.Retryable = model.CodeEmptyAnswer, true
	switch finish {
	case "content_filter":
		e.Retryable = false
		e.Msg = fmt.Sprintf("The provider's content filter withheld the answer of the model at %s. Word the prompt differently.", a.shown)
	case "length":
		e.Retryable = false
		e.Msg = fmt.Sprintf("The model at %s reached its output limit before it wrote anything. Raise the server's limit on output tokens, or shorten the conversation.", a.shown)
		if reasoned {
			e.Msg = fmt.Sprintf("The model at %s used up its output limit on reasoning. Raise the server's limit on output tokens, or lower the reasoning effort.", a.shown)
		}
	}
	return e
}

// saidError is what a server says about an error.
type saidError struct {
	status              int
	code, kind, message string
}

// parseError reads the bodies that servers send: {"error":{…}}, {"error":"…"},
// {"message":…}, {"detail":…}, a list of one of these, or plain text.
func parseError(body []byte) saidError {
	var top struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Code    any             `json:"code"`
		Status  any             `json:"status"`
	}
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		return parseError(list[0])
	}
	if json.Unmarshal(body, &top) != nil {
		text := string(body)
		if strings.Contains(text, "<html") || strings.Contains(text, "<!DOCTYPE") {
			return saidError{}
		}
		return saidError{message: text}
	}
	switch {
	case len(top.Error) > 0 && string(top.Error) != "null":
		said := parseErrorValue(top.Error)
		if n, ok := top.Status.(float64); ok && n >= 400 && n < 600 && said.status == 0 {
			said.status = int(n)
		}
		return said
	case len(top.Message) > 0:
		said := parseErrorValue(top.Message)
		said.code = textOf(top.Code)
		return said
	case len(top.Detail) > 0:
		return parseErrorValue(top.Detail)
	}
	return saidError{message: string(body)}
}

func parseErrorValue(raw []byte) saidError {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return saidError{message: text}
	}
	var obj struct {
		Message any `json:"message"`
		Code    any `json:"code"`
		Type    any `json:"type"`
		Status  any `json:"status"`
	}
	if json.Unmarshal(raw, &obj) != nil || obj.Message == nil {
		return saidError{message: string(raw)}
	}
	said := saidError{message: textOf(obj.Message), code: textOf(obj.Code), kind: textOf(obj.Type)}
	for _, v := range []any{obj.Code, obj.Status} {
		if n, ok := v.(float64); ok && n >= 400 && n < 600 {
			said.status = int(n)
		}
	}
	if said.code == "" {
		said.code = said.kind
	}
	return said
}

func textOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		data, _ := json.Marshal(v)
		return string(data)
	}
}

// maxHeaderWait is the longest wait that is read from a header; it is far beyond
// what any policy accepts.
const maxHeaderWait = 30 * 24 * time.Hour

// retryAfter reads retry-after-ms and retry-after: seconds or a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return clampWait(ms * float64(time.Millisecond))
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 {
		return clampWait(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil && at.After(now) {
		return clampWait(float64(at.Sub(now)))
	}
	return 0
}

func clampWait(ns float64) time.Duration {
	if !(ns < float64(maxHeaderWait)) { // also NaN
		return maxHeaderWait
	}
	return time.Duration(ns)
}
