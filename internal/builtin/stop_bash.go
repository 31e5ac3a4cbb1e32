package builtin

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/transom-run/transom/tool"
)

const stopBashSchema = `{
 "type": "object",
 "properties": {"shellId": {"type": "string", "description": "Which command, as bash gave it."}},
 "required": ["shellId"]
}`

func (s *Set) stopBash() tool.Tool {
	return tool.Tool{Name: "stop_bash", Parameters: json.RawMessage(stopBashSchema), Permission: noPermission,
		Handler: func(_ context.Context, call tool.Call) (tool.Result, error) {
			var a shellArgs
			if err := decode(call, &a); err != nil {
				return tool.Result{}, err
			}
			sh, err := s.shells.find(a.ShellID)
			if err != nil {
				return failure("%v", err)
			}
			if sh.gone() {
				return success(join(sh.news(), completed(sh.id, sh.code)))
			}
			sh.terminate(s.cfg.Grace)
			return success(join(sh.news(), fmt.Sprintf("<shellId: %s was stopped, with everything it had started>", sh.id)))
		}}
}
