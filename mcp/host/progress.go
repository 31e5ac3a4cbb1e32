package host

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/transom-run/transom/tool"
)

// lingering is how many calls that have ended are still known: what a server said
// before its result may be read after it.
const lingering = 32

// maxProgress bounds what is told of a call's progress, in bytes.
const maxProgress = 1 << 10

// progress are the calls of a link whose servers may say how far they are, by the
// token that the server was given. Calls of several agents may have one id, so the
// token is a number of this link's own.
type progress struct {
	mu    sync.Mutex
	last  int
	calls map[string]*underway
	ended []string // the tokens of the newest calls that have ended, oldest first
}

// underway is one such call, without what it was asked.
type underway struct {
	call    tool.Call
	telling atomic.Bool // what was said last is on its way; more is passed over
}

func (p *progress) begin(call tool.Call) (token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	if p.calls == nil {
		p.calls = map[string]*underway{}
	}
	token = strconv.Itoa(p.last)
	call.Arguments = nil // a call that has ended keeps nothing large
	p.calls[token] = &underway{call: call}
	return token
}

func (p *progress) end(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = append(p.ended, token)
	if len(p.ended) > lingering {
		delete(p.calls, p.ended[0])
		p.ended = slices.Delete(p.ended, 0, 1)
	}
}

// said passes on what a server says of a call. A server that says it
// faster than it can be told is not waited for, and piles nothing up.
func (p *progress) said(h *Host, n *sdk.ProgressNotificationParams) {
	token, _ := n.ProgressToken.(string)
	p.mu.Lock()
	u := p.calls[token]
	p.mu.Unlock()
	if u == nil || !u.telling.CompareAndSwap(false, true) {
		return
	}
	h.cfg.Progress(u.call, h.cfg.Redact(words(n)), func() { u.telling.Store(false) })
}

// words is how far a call is, for a person.
func words(n *sdk.ProgressNotificationParams) string {
	text := strings.ToValidUTF8(n.Message, "\ufffd")
	if len(text) > maxProgress {
		text = strings.ToValidUTF8(text[:maxProgress], "") + "…"
	}
	if text != "" {
		return text
	}
	text = strconv.FormatFloat(n.Progress, 'f', -1, 64)
	if n.Total > 0 {
		text += " of " + strconv.FormatFloat(n.Total, 'f', -1, 64)
	}
	return text
}
