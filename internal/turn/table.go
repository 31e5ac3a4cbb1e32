package turn

import (
	"fmt"

	"github.com/transom-run/transom/internal/lazy"
)

// rule says what an input does in a phase: the phases it may lead to. An input
// that stands nowhere in a phase's row is refused there.
type rule struct {
	to     []Phase
	ignore bool // accepted, changes nothing
	result any  // of an ignored input
}

// Warm makes the tables that the first step of the process would make.
func Warm() {
	table.Get()
	folds.Get()
}

func to(p ...Phase) rule { return rule{to: p} }

var (
	stay      = rule{ignore: true}
	noAnswer  = rule{ignore: true, result: false}
	anyActive = []Phase{Idle, Preparing, Thinking, Acting}
)

// table is every legal transition. A test walks all of it: each listed target is
// reached by some case, and each pair that is not listed is refused.
var table = lazy.Value[map[Phase]map[Kind]rule]{Make: func() map[Phase]map[Kind]rule {
	return map[Phase]map[Kind]rule{
		Unborn: {
			KindBegin:   to(Idle),
			KindClose:   to(Closed),
			KindSuspend: to(Closed),
		},
		Idle: {
			KindChangeSchedule:     to(Idle),
			KindTick:               to(Idle, Preparing, Thinking),
			KindStartAgent:         to(Idle),
			KindChangeAgent:        to(Idle, Preparing),
			KindTimeUp:             stay,
			KindGoBack:             to(Preparing),
			KindPastFound:          stay,
			KindFilesRestored:      stay,
			KindCompact:            to(Idle),
			KindCancelCompaction:   to(Idle),
			KindCompactionDone:     to(Idle),
			KindCounted:            stay,
			KindArrange:            to(Idle, Preparing, Thinking),
			KindCommandDone:        stay,
			KindPermissionPrepared: stay,
			KindHookDone:           stay,
			KindResume:             to(Idle, Preparing, Thinking),
			KindAttach:             to(Idle),
			KindDetach:             to(Idle, Ending, Closed),
			KindConfigure:          to(Idle),
			KindSend:               to(Idle, Preparing, Thinking),
			KindClear:              to(), // refused by its own rules: the message says why
			KindAbort:              to(Idle),
			KindModelChunk:         stay,
			KindModelRetry:         stay,
			KindModelDone:          stay,
			KindModelFailed:        stay,
			KindToolDone:           stay,
			KindToolAnswer:         noAnswer,
			KindPermissionAnswer:   noAnswer,
			KindNote:               to(Idle),
			KindStoreFailed:        to(Idle),
			KindClose:              to(Ending, Closed),
			KindSuspend:            to(Closed),
		},
		Thinking: {
			KindChangeSchedule:     to(Thinking),
			KindTick:               to(Thinking),
			KindStartAgent:         to(Thinking),
			KindChangeAgent:        to(Thinking),
			KindTimeUp:             stay,
			KindGoBack:             to(), // refused by its own rules
			KindPastFound:          stay,
			KindFilesRestored:      stay,
			KindCompact:            to(Thinking),
			KindCancelCompaction:   to(Idle, Preparing, Thinking),
			KindCompactionDone:     to(Idle, Preparing, Thinking),
			KindCounted:            to(Thinking),
			KindArrange:            to(Thinking),
			KindCommandDone:        stay,
			KindPermissionPrepared: stay,
			KindHookDone:           to(Thinking),
			KindResume:             to(Thinking),
			KindAttach:             to(Thinking),
			KindDetach:             to(Thinking, Ending, Closed),
			KindConfigure:          to(Thinking),
			KindSend:               to(Thinking),
			KindClear:              to(),
			KindAbort:              to(Idle),
			KindModelChunk:         to(Thinking),
			KindModelRetry:         to(Thinking),
			KindModelDone:          to(anyActive...),
			KindModelFailed:        to(Idle, Preparing, Thinking),
			KindToolDone:           stay,
			KindToolAnswer:         noAnswer,
			KindPermissionAnswer:   noAnswer,
			KindNote:               to(Thinking),
			KindStoreFailed:        to(Stranded),
			KindClose:              to(Ending, Closed),
			KindSuspend:            to(Closed),
		},
		Acting: {
			KindChangeSchedule:     to(Acting),
			KindTick:               to(Acting),
			KindStartAgent:         to(Acting),
			KindChangeAgent:        to(anyActive...),
			KindTimeUp:             to(anyActive...),
			KindGoBack:             to(), // refused by its own rules
			KindPastFound:          stay,
			KindFilesRestored:      stay,
			KindCompact:            to(),
			KindCancelCompaction:   to(Acting),
			KindCompactionDone:     to(Acting),
			KindCounted:            stay,
			KindArrange:            to(Acting),
			KindCommandDone:        stay,
			KindPermissionPrepared: to(Idle, Preparing, Thinking, Acting),
			KindHookDone:           to(anyActive...),
			KindResume:             to(anyActive...),
			KindAttach:             to(Acting),
			KindDetach:             to(Idle, Preparing, Thinking, Acting, Ending, Closed),
			KindConfigure:          to(Acting),
			KindSend:               to(Acting),
			KindClear:              to(Acting),
			KindAbort:              to(Idle),
			KindModelChunk:         stay,
			KindModelRetry:         stay,
			KindModelDone:          stay,
			KindModelFailed:        stay,
			KindToolDone:           to(anyActive...),
			KindToolAnswer:         to(anyActive...),
			KindPermissionAnswer:   to(anyActive...),
			KindNote:               to(Acting),
			KindStoreFailed:        to(Stranded),
			KindClose:              to(Ending, Closed),
			KindSuspend:            to(Closed),
		},
		Stranded: {
			KindChangeSchedule:     to(Stranded),
			KindTick:               stay,
			KindStartAgent:         to(Stranded),
			KindChangeAgent:        to(Stranded),
			KindTimeUp:             stay,
			KindGoBack:             to(), // refused by its own rules
			KindPastFound:          stay,
			KindFilesRestored:      stay,
			KindCompact:            to(),
			KindCancelCompaction:   noAnswer,
			KindCompactionDone:     stay,
			KindCounted:            stay,
			KindArrange:            to(Stranded),
			KindCommandDone:        stay,
			KindPermissionPrepared: stay,
			KindHookDone:           stay,
			KindResume:             to(anyActive...),
			KindAttach:             to(Stranded),
			KindDetach:             to(Stranded, Ending, Closed),
			KindConfigure:          to(Stranded),
			KindSend:               to(Idle, Preparing, Thinking),
			KindClear:              to(),
			KindAbort:              to(Idle),
			KindModelChunk:         stay,
			KindModelRetry:         stay,
			KindModelDone:          stay,
			KindModelFailed:        stay,
			KindToolDone:           stay,
			KindToolAnswer:         noAnswer,
			KindPermissionAnswer:   noAnswer,
			KindNote:               to(Stranded),
			KindStoreFailed:        stay,
			KindClose:              to(Ending, Closed),
			KindSuspend:            to(Closed),
		},
		Preparing: {
			KindChangeSchedule:     to(Preparing),
			KindTick:               to(Preparing),
			KindStartAgent:         to(Preparing),
			KindChangeAgent:        to(Preparing),
			KindTimeUp:             stay,
			KindGoBack:             to(), // refused by its own rules
			KindPastFound:          to(Idle, Preparing, Thinking),
			KindFilesRestored:      to(Idle, Preparing, Thinking),
			KindCompact:            to(Preparing),
			KindCancelCompaction:   to(Preparing),
			KindCompactionDone:     to(Preparing),
			KindCounted:            stay,
			KindArrange:            to(Preparing),
			KindCommandDone:        to(Idle, Preparing, Thinking),
			KindPermissionPrepared: stay,
			KindHookDone:           to(Idle, Preparing, Thinking),
			KindResume:             to(Preparing),
			KindAttach:             to(Preparing),
			KindDetach:             to(Idle, Preparing, Stranded, Ending, Closed),
			KindConfigure:          to(Preparing),
			KindSend:               to(Preparing),
			KindClear:              to(),
			KindAbort:              to(Idle, Preparing),
			KindModelChunk:         stay,
			KindModelRetry:         stay,
			KindModelDone:          stay,
			KindModelFailed:        stay,
			KindToolDone:           stay,
			KindToolAnswer:         noAnswer,
			KindPermissionAnswer:   noAnswer,
			KindNote:               to(Preparing),
			KindStoreFailed:        to(Idle, Stranded),
			KindClose:              to(Ending, Closed),
			KindSuspend:            to(Closed),
		},
		Ending: {
			KindTick:               stay,
			KindTimeUp:             stay,
			KindPastFound:          stay,
			KindFilesRestored:      stay,
			KindCompactionDone:     stay,
			KindCounted:            stay,
			KindCommandDone:        stay,
			KindPermissionPrepared: stay,
			KindHookDone:           to(Closed),
			KindDetach:             to(Closed),
			KindConfigure:          to(Ending),
			KindModelChunk:         stay,
			KindModelRetry:         stay,
			KindModelDone:          stay,
			KindModelFailed:        stay,
			KindToolDone:           stay,
			KindToolAnswer:         noAnswer,
			KindPermissionAnswer:   noAnswer,
			KindNote:               to(Ending),
			KindStoreFailed:        to(Closed),
			KindClose:              to(Closed),
			KindSuspend:            to(Closed),
		},
		Closed: {
			KindTick:               stay,
			KindTimeUp:             stay,
			KindPastFound:          stay,
			KindFilesRestored:      stay,
			KindCompactionDone:     stay,
			KindCounted:            stay,
			KindCommandDone:        stay,
			KindPermissionPrepared: stay,
			KindHookDone:           stay,
			KindDetach:             stay,
			KindModelChunk:         stay,
			KindModelRetry:         stay,
			KindModelDone:          stay,
			KindModelFailed:        stay,
			KindToolDone:           stay,
			KindToolAnswer:         noAnswer,
			KindPermissionAnswer:   noAnswer,
			KindStoreFailed:        stay,
			KindClose:              stay,
			KindSuspend:            stay,
		},
	}
}}

// refuse is the error of an input that stands nowhere in the table.
func refuse(p Phase, b Body) error {
	switch {
	case p == Closed || p == Ending:
		return &Refusal{Kind: "closing", Msg: "the session has ended here: resume it to go on"}
	case b.kind() == KindBegin:
		return &Refusal{Kind: "conflict", Msg: "the session exists already: resume it instead"}
	}
	return &Refusal{Kind: "wrong_state", Msg: fmt.Sprintf("%s is not possible while the session is %s", b.kind(), p)}
}
