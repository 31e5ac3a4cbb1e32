package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/transom-run/transom/tool"
)

const listBashSchema = `{"type": "object", "properties": {}}`

func (s *Set) listBash() tool.Tool {
	return tool.Tool{Name: "list_bash", Parameters: json.RawMessage(listBashSchema), Permission: noPermission,
		Handler: func(context.Context, tool.Call) (tool.Result, error) {
			var b strings.Builder
			for _, sh := range s.shells.list() {
				state := "running for " + time.Since(sh.started).Round(time.Second).String()
				switch {
				case sh.hasEnded() && !sh.gone():
					state = fmt.Sprintf("exited with exit code %d, with programs left running", sh.code)
				case sh.hasEnded():
					state = fmt.Sprintf("exited with exit code %d", sh.code)
				}
				fmt.Fprintf(&b, "shellId: %s (%s): %s\n", sh.id, state, oneLine(sh.command, 200))
			}
			if b.Len() == 0 {
				return success("No command was started, or all have ended long ago.")
			}
			return success(strings.TrimSuffix(b.String(), "\n"))
		}}
}

// oneLine is the beginning of a text, without line feeds.
func oneLine(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
