package turn

import "fmt"

// rule says what an input does in a phase: the phases it may lead to. An input
// that stands nowhere in a phase's row is refused there.
type rule struct {
	to     []Phase
	ignore bool // accepted, changes nothing
	result any  // of an ignored input
}

func to(p ...Phase) rule { return rule{to: p} }

var (
	stay      = rule{ignore: true}
	noAnswer  = rule{ignore: true, result: false}
	anyActive = []Phase{Idle, Thinking, Acting}
)

// table is every legal transition. A test walks all of it: each listed target is
// reached by some case, and each pair that is not listed is refused.
var table = map[Phase]map[Kind]rule{
	Unborn: {
		KindBegin:   to(Idle),
		KindClose:   to(Closed),
		KindSuspend: to(Closed),
	},
	Idle: {
		KindResume:           to(Idle, Thinking),
		KindAttach:           to(Idle),
		KindDetach:           to(Idle, Closed),
		KindConfigure:        to(Idle),
		KindSend:             to(Thinking),
		KindClear:            to(), // refused by its own rules: the message says why
		KindAbort:            stay,
		KindModelChunk:       stay,
		KindModelRetry:       stay,
		KindModelDone:        stay,
		KindModelFailed:      stay,
		KindToolDone:         stay,
		KindToolAnswer:       noAnswer,
		KindPermissionAnswer: noAnswer,
		KindNote:             to(Idle),
		KindStoreFailed:      stay,
		KindClose:            to(Closed),
		KindSuspend:          to(Closed),
	},
	Thinking: {
		KindResume:           to(Thinking),
		KindAttach:           to(Thinking),
		KindDetach:           to(Thinking, Closed),
		KindConfigure:        to(Thinking),
		KindSend:             to(Thinking),
		KindClear:            to(),
		KindAbort:            to(Idle),
		KindModelChunk:       to(Thinking),
		KindModelRetry:       to(Thinking),
		KindModelDone:        to(anyActive...),
		KindModelFailed:      to(Idle, Thinking),
		KindToolDone:         stay,
		KindToolAnswer:       noAnswer,
		KindPermissionAnswer: noAnswer,
		KindNote:             to(Thinking),
		KindStoreFailed:      to(Stranded),
		KindClose:            to(Closed),
		KindSuspend:          to(Closed),
	},
	Acting: {
		KindResume:           to(Idle, Acting),
		KindAttach:           to(Acting),
		KindDetach:           to(Idle, Thinking, Acting, Closed),
		KindConfigure:        to(Acting),
		KindSend:             to(Acting),
		KindClear:            to(Acting),
		KindAbort:            to(Idle),
		KindModelChunk:       stay,
		KindModelRetry:       stay,
		KindModelDone:        stay,
		KindModelFailed:      stay,
		KindToolDone:         to(anyActive...),
		KindToolAnswer:       to(anyActive...),
		KindPermissionAnswer: to(anyActive...),
		KindNote:             to(Acting),
		KindStoreFailed:      to(Stranded),
		KindClose:            to(Closed),
		KindSuspend:          to(Closed),
	},
	Stranded: {
		KindResume:           to(anyActive...),
		KindAttach:           to(Stranded),
		KindDetach:           to(Stranded, Closed),
		KindConfigure:        to(Stranded),
		KindSend:             to(Thinking),
		KindClear:            to(),
		KindAbort:            to(Idle),
		KindModelChunk:       stay,
		KindModelRetry:       stay,
		KindModelDone:        stay,
		KindModelFailed:      stay,
		KindToolDone:         stay,
		KindToolAnswer:       noAnswer,
		KindPermissionAnswer: noAnswer,
		KindNote:             to(Stranded),
		KindStoreFailed:      stay,
		KindClose:            to(Closed),
		KindSuspend:          to(Closed),
	},
	Closed: {
		KindDetach:           stay,
		KindModelChunk:       stay,
		KindModelRetry:       stay,
		KindModelDone:        stay,
		KindModelFailed:      stay,
		KindToolDone:         stay,
		KindToolAnswer:       noAnswer,
		KindPermissionAnswer: noAnswer,
		KindStoreFailed:      stay,
		KindClose:            stay,
		KindSuspend:          stay,
	},
}

// refuse is the error of an input that stands nowhere in the table.
func refuse(p Phase, b Body) error {
	switch {
	case p == Closed:
		return &Refusal{Kind: "closing", Msg: "the session has ended here: resume it to go on"}
	case b.kind() == KindBegin:
		return &Refusal{Kind: "conflict", Msg: "the session exists already: resume it instead"}
	}
	return &Refusal{Kind: "wrong_state", Msg: fmt.Sprintf("%s is not possible while the session is %s", b.kind(), p)}
}
