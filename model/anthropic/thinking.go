package anthropic

import (
	"strconv"
	"strings"

	"github.com/transom-run/transom/internal/jsonstring"
	"github.com/transom-run/transom/internal/lazy"
	"github.com/transom-run/transom/model"
)

// Default bounds of an answer, in tokens: the wire must name one, and refuses
// what a model cannot do. An answer that is not streamed is kept shorter, since
// a connection that is silent for long is often cut on its way.
const (
	maxTokens      = 32_000
	maxTokensWhole = 16_000
	maxTokensOther = 8_192 // of models that are not known
	maxTokensOld   = 4_096
)

// How models think, by their names. What comes after them thinks adaptively.
// (They are compiled when a request needs them: starting costs nothing.)
var (
	oldest    = lazy.Regexp{Expr: `claude-(?:2|instant|3-(?:opus|sonnet|haiku))`}
	noThought = lazy.Regexp{Expr: `claude-(?:2|instant|3-(?:opus|sonnet|haiku|5))`}
	budgeted  = lazy.Regexp{Expr: `claude-(?:3[-.]7|(?:opus|sonnet|haiku)-4(?:[-.][0-5])?(?:$|-20|-latest|[^0-9.-]))`}
)

func isClaude(name string) bool { return strings.Contains(name, "claude") }

// budgets are the tokens for thinking, by effort.
var budgets = lazy.Value[map[string]int]{Make: func() map[string]int {
	return map[string]int{"minimal": 1024, "low": 2048, "medium": 8192, "high": 16_384, "xhigh": 24_576, "max": 28_672}
}}

func defaultMaxTokens(name string, stream bool) int {
	switch {
	case oldest.Get().MatchString(name):
		return maxTokensOld
	case !isClaude(name), noThought.Get().MatchString(name):
		return maxTokensOther
	case stream:
		return maxTokens
	}
	return maxTokensWhole
}

// appendThinking writes how much the model is to think, and the bound of the
// answer, which thinking is part of.
func appendThinking(b []byte, req *model.Request, name string, bound int) []byte {
	b = append(b, `,"max_tokens":`...)
	b = strconv.AppendInt(b, int64(bound), 10)
	effort := req.ReasoningEffort
	switch {
	case effort == "" || effort == "none" || !isClaude(name) || noThought.Get().MatchString(name):
	case budgeted.Get().MatchString(name):
		budget := min(budgets.Get()[effort], bound*3/4)
		if budget < 1024 || !thoughtful(req.Messages) {
			break
		}
		b = append(b, `,"thinking":{"type":"enabled","budget_tokens":`...)
		b = strconv.AppendInt(b, int64(budget), 10)
		b = append(b, '}')
	default:
		if effort == "minimal" {
			effort = "low"
		}
		b = append(b, `,"thinking":{"type":"adaptive"`...)
		if s := req.ReasoningSummary; s != "" && s != "none" {
			b = append(b, `,"display":"summarized"`...)
		}
		b = append(b, `},"output_config":{"effort":`...)
		b = jsonstring.Append(b, effort)
		b = append(b, '}')
	}
	return b
}

// thoughtful reports whether every call of the loop under way still has its
// thinking: without, a request that asks for thinking on a budget is refused. It
// is missing where another model, or one without effort, began the loop.
func thoughtful(msgs []model.Message) bool {
	for i := len(msgs) - 1; i >= 0 && msgs[i].Role != model.User; i-- {
		if m := &msgs[i]; len(m.Calls) > 0 && !strings.HasPrefix(m.ReasoningOpaque, "[") {
			return false
		}
	}
	return true
}
