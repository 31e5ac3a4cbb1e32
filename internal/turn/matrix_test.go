package turn

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/internal/policy"
	"github.com/transom-run/transom/model"
)

// script plays the commands of a transcript and returns the world after them.
func script(t *testing.T, commands string) *player {
	t.Helper()
	p := &player{world: newWorld(t)}
	p.reached = map[string]bool{}
	for _, line := range strings.Split(commands, ";") {
		p.fields = split(t, line)
		p.line()
	}
	return p
}

const (
	born     = `new tools=a,b,end!`
	thinking = born + `; send "go"`
	acting   = thinking + `; model call c1 a {} call c2 b {}`
	local    = `new tools=a*,end!*; send "go"; model call c1 a {}`
	asking   = `new tools=a,b,end! ask; send "go"; model call c1 a {}`
	stranded = acting + `; kill`
	closed   = born + `; close`

	queueing = thinking + `; send "1"; send "2"`
	waiting  = queueing + `; abort`
	ordered  = thinking + `; send "/c" command; send "2"; model text "x"`

	prepared = `new tools=a*?,b~ ask deaf; send "go"; model call c1 a {} call c2 b {}`

	used = `new; send "1"; model text "x"`

	crew     = `new tools=a,end! agents=x`
	resting  = crew + `; start x k "P"; send "go"; model text "x"`
	pair     = handed + ` call c1 a {}`
	reading  = crew + `; start x k "P"; send "go"; model call r read_agent {"agent_id":"k","wait":true`
	handed   = crew + `; send "go"; model call t task {"name":"k","agent_type":"x","prompt":"P"}`
	squeezed = `new compacts limit=5000; send "1"; model text "x"; send "2"; model toolarge`

	goingBack = used + `; goback user.message`
	bringing  = `new; track; send "1"; model text "x"; goback user.message files; past`

	hooked    = `new tools=a,b,end! hooks`
	preparing = hooked + `; send "go"`
	working   = preparing + `; hook; hook; hook`
	hooking   = working + `; model call c1 a {}`
	ending    = hooked + `; detach A`
	steering  = hooking + `; hook; send "more" immediate; answer c1 "x"; hook`
)

// phases has, for each phase, commands that lead there.
var phases = map[Phase]string{Idle: born, Thinking: thinking, Acting: acting, Stranded: stranded, Closed: closed, Preparing: preparing, Ending: ending}

// cases has, for each row of the table and each phase that it lists, commands
// whose last one makes that very transition.
var cases = map[string]string{
	"unborn begin idle":     born,
	"unborn close closed":   `close`,
	"unborn suspend closed": `suspend`,

	"idle resume idle":       born + `; resume B`,
	"idle resume thinking":   born + `; send "1"; send "2"; abort; resume B continue`,
	"idle attach idle":       born + `; attach B tools=c`,
	"idle detach idle":       born + `; detach A lost`,
	"idle detach closed":     born + `; detach A`,
	"idle configure idle":    born + `; configure mode=plan`,
	"idle send thinking":     thinking,
	"idle store_failed idle": used + `; compact; storefail`,
	"idle note idle":         born + `; note "x"`,
	"idle close closed":      closed,
	"idle suspend closed":    born + `; suspend`,

	"thinking resume thinking":       thinking + `; resume B`,
	"thinking attach thinking":       thinking + `; attach B`,
	"thinking detach thinking":       thinking + `; detach A lost`,
	"thinking detach closed":         thinking + `; detach A`,
	"thinking configure thinking":    thinking + `; configure model=x`,
	"thinking send thinking":         thinking + `; send "more"`,
	"thinking abort idle":            thinking + `; abort`,
	"thinking model_chunk thinking":  `new stream; send "go"; model chunk "x"`,
	"thinking model_retry thinking":  thinking + `; model retry "x"`,
	"thinking model_done idle":       thinking + `; model text "x"`,
	"thinking model_done thinking":   thinking + `; model call c1 nope {}`,
	"thinking model_done acting":     acting,
	"thinking model_failed idle":     thinking + `; model fail "x"`,
	"thinking model_failed thinking": thinking + `; send "more"; model fail "x"`,
	"thinking note thinking":         thinking + `; note "x"`,
	"thinking store_failed stranded": thinking + `; storefail`,
	"thinking close closed":          thinking + `; close`,
	"thinking suspend closed":        thinking + `; suspend`,

	"acting resume acting":              acting + `; resume B continue`,
	"acting resume idle":                acting + `; detach A lost; resume B`,
	"acting attach acting":              acting + `; attach B`,
	"acting detach acting":              acting + `; attach B; attach C; detach C`,
	"acting detach thinking":            acting + `; attach B; detach A`,
	"acting detach idle":                acting + `; attach B; answer c1 "x" type=rejected; detach A`,
	"acting detach closed":              acting + `; detach A`,
	"acting configure acting":           acting + `; configure mode=plan`,
	"acting send acting":                acting + `; send "more"`,
	"acting clear acting":               acting + `; clear "SEED"`,
	"acting abort idle":                 acting + `; abort`,
	"acting tool_done acting":           `new tools=a*; send "go"; model call c1 a {} call c2 a {}; done c1 "x"`,
	"acting tool_done thinking":         local + `; done c1 "x"`,
	"acting tool_done idle":             local + `; done c1 "x" type=rejected`,
	"acting tool_answer acting":         acting + `; answer c1 "x"`,
	"acting tool_answer thinking":       acting + `; answer c1 "x"; answer c2 "x"`,
	"acting tool_answer idle":           thinking + `; model call c1 end {}; answer c1 "x"`,
	"acting permission_answer acting":   asking + `; allow c1`,
	"acting permission_answer thinking": asking + `; unavailable c1`,
	"acting permission_answer idle":     asking + `; reject c1`,
	"acting note acting":                acting + `; note "x"`,
	"acting store_failed stranded":      acting + `; storefail`,
	"acting close closed":               acting + `; close`,
	"acting suspend closed":             acting + `; suspend`,

	"idle change_schedule idle":           born + `; schedule add "E" every=60s`,
	"thinking change_schedule thinking":   thinking + `; schedule add "E" every=60s`,
	"acting change_schedule acting":       acting + `; schedule add "E" every=60s`,
	"stranded change_schedule stranded":   stranded + `; schedule add "E" every=60s`,
	"preparing change_schedule preparing": preparing + `; schedule add "E" every=60s`,
	"idle tick idle":                      born + `; tick`,
	"idle tick thinking":                  born + `; schedule add "E" every=60s; pass 60s; tick`,
	"idle tick preparing":                 hooked + `; schedule add "E" every=60s; pass 60s; tick`,
	"thinking tick thinking":              thinking + `; schedule add "E" every=60s; pass 60s; tick`,
	"acting tick acting":                  acting + `; schedule add "E" every=60s; pass 60s; tick`,
	"preparing tick preparing":            preparing + `; schedule add "E" every=60s; pass 60s; tick`,

	"stranded resume idle":        stranded + `; resume B`,
	"stranded resume thinking":    thinking + `; kill; resume B continue`,
	"stranded resume acting":      stranded + `; resume B continue`,
	"stranded attach stranded":    stranded + `; attach B`,
	"stranded detach stranded":    stranded + `; attach B; detach B lost`,
	"stranded detach closed":      stranded + `; attach B; detach B`,
	"stranded configure stranded": stranded + `; configure mode=plan`,
	"stranded send thinking":      stranded + `; send "next"`,
	"stranded abort idle":         stranded + `; abort`,
	"stranded note stranded":      stranded + `; note "x"`,
	"stranded close closed":       stranded + `; close`,
	"stranded suspend closed":     stranded + `; suspend`,

	"idle send preparing":                   preparing,
	"idle detach ending":                    ending,
	"idle resume preparing":                 hooked + `; send "1"; abort; resume A hooks continue`,
	"thinking hook_done thinking":           working + `; send "2"; model fail "x"; hook newest; hook newest; hook`,
	"thinking model_done preparing":         working + `; model text "x"`,
	"thinking model_failed preparing":       working + `; send "more"; model fail "x"`,
	"thinking detach ending":                working + `; detach A`,
	"acting hook_done idle":                 working + `; model call c1 end {}; hook; attach B; answer c1 "x"; detach A lost; hook`,
	"acting hook_done thinking":             hooking + `; hook; answer c1 "x"; hook`,
	"acting hook_done acting":               hooking + `; hook`,
	"acting hook_done preparing":            working + `; model call c1 end {}; hook; answer c1 "x"; hook`,
	"acting resume preparing":               acting + `; clear "SEED"; detach A lost; resume B hooks continue`,
	"acting permission_answer preparing":    asking + `; attach B hooks; reject c1`,
	"acting detach preparing":               acting + `; attach B hooks; answer c1 "x" type=rejected; hook; detach A`,
	"acting detach ending":                  hooking + `; detach A`,
	"stranded resume preparing":             acting + `; clear "SEED"; kill; resume B hooks continue`,
	"stranded send preparing":               stranded + `; attach B hooks; send "next"`,
	"stranded detach ending":                stranded + `; attach B hooks; detach B`,
	"preparing hook_done idle":              working + `; model text "x"; hook`,
	"preparing hook_done preparing":         preparing + `; hook`,
	"preparing hook_done thinking":          working,
	"preparing resume preparing":            preparing + `; resume B`,
	"preparing attach preparing":            preparing + `; attach B`,
	"preparing detach idle":                 preparing + `; detach A lost`,
	"preparing detach preparing":            preparing + `; attach B; detach B`,
	"preparing detach stranded":             steering + `; detach A lost`,
	"preparing detach ending":               preparing + `; detach A`,
	"preparing detach closed":               preparing + `; attach B; detach A lost; detach B`,
	"preparing configure preparing":         preparing + `; configure mode=plan`,
	"preparing send preparing":              preparing + `; send "more"`,
	"preparing abort idle":                  preparing + `; abort`,
	"preparing note preparing":              preparing + `; note "x"`,
	"preparing store_failed idle":           preparing + `; storefail`,
	"preparing store_failed stranded":       steering + `; storefail`,
	"preparing close closed":                preparing + `; close`,
	"preparing suspend closed":              preparing + `; suspend`,
	"ending hook_done closed":               ending + `; hook`,
	"ending detach closed":                  ending + `; detach A lost`,
	"ending configure ending":               ending + `; configure mode=plan`,
	"ending note ending":                    ending + `; note "x"`,
	"ending store_failed closed":            ending + `; storefail`,
	"ending close closed":                   ending + `; close`,
	"acting resume thinking":                acting + `; clear "SEED"; detach A lost; resume B continue`,
	"acting permission_prepared idle":       prepared + `; answer c2 "x" type=rejected; prepared c1 {"kind":"write"}`,
	"acting permission_prepared preparing":  prepared + `; answer c2 "x" type=rejected; attach B hooks deaf; prepared c1 {"kind":"write"}`,
	"acting permission_prepared thinking":   prepared + `; answer c2 "x"; prepared c1 fail "no such file"`,
	"acting permission_prepared acting":     prepared + `; attach B; prepared c1 {"kind":"write"}`,
	"idle close ending":                     hooked + `; close ask`,
	"thinking close ending":                 working + `; close ask`,
	"acting close ending":                   hooking + `; close ask`,
	"preparing close ending":                preparing + `; close ask`,
	"stranded close ending":                 stranded + `; attach B hooks; close ask`,
	"idle send idle":                        born + `; arrange pause on; send "1"`,
	"stranded send idle":                    stranded + `; arrange pause on; send "1"`,
	"idle arrange idle":                     waiting + `; arrange move "2" at=0`,
	"idle arrange thinking":                 born + `; arrange insert "x"`,
	"idle arrange preparing":                thinking + `; send "/c" command; abort; arrange pause on; arrange pause off`,
	"thinking arrange thinking":             queueing + `; arrange steer "2"`,
	"acting arrange acting":                 acting + `; send "1"; arrange remove "1"`,
	"stranded arrange stranded":             stranded + `; arrange insert "x"`,
	"preparing arrange preparing":           preparing + `; arrange insert "x"`,
	"preparing command_done idle":           ordered + `; ran stop`,
	"preparing command_done thinking":       ordered + `; ran`,
	"preparing command_done preparing":      ordered + `; send "/d" command; arrange remove "2"; ran`,
	"acting tool_done preparing":            local + `; send "/c" command; done c1 "x" type=rejected`,
	"acting tool_answer preparing":          thinking + `; model call c1 end {}; send "/c" command; answer c1 "x"`,
	"idle compact idle":                     used + `; compact`,
	"idle cancel_compaction idle":           used + `; compact; cancel-compaction`,
	"idle compaction_done idle":             used + `; compact; summary "S"`,
	"preparing compact preparing":           `new hooks; send "1"; hook; hook; hook; model text "x"; hook; send "2"; compact`,
	"preparing cancel_compaction preparing": preparing + `; cancel-compaction`,
	"preparing compaction_done preparing":   preparing + `; summary "S"`,
	"thinking compact thinking":             used + `; send "2"; compact`,
	"thinking cancel_compaction thinking":   thinking + `; cancel-compaction`,
	"thinking compaction_done thinking":     used + `; send "2"; compact; summary "S"`,
	"thinking counted thinking":             `new compacts counts limit=100; send "1"; counted 10 20 0`,
	"acting cancel_compaction acting":       acting + `; cancel-compaction`,
	"acting compaction_done acting":         `new tools=a; send "1"; compact; model call c1 a {}; summary "S"`,
	"idle abort idle":                       resting + `; abort`,
	"idle start_agent idle":                 crew + `; start x k "P"`,
	"thinking start_agent thinking":         crew + `; send "go"; start x k "P"`,
	"acting start_agent acting":             crew + `; send "go"; model call c1 a {}; start x k "P"`,
	"preparing start_agent preparing":       `new agents=x hooks; send "go"; start x k "P"`,
	"stranded start_agent stranded":         crew + `; send "go"; storefail; start x k "P"`,
	"idle change_agent idle":                resting + `; cancel k`,
	"idle change_agent preparing":           resting + `; attach B hooks; cancel k`,
	"thinking change_agent thinking":        crew + `; send "go"; start x k "P"; cancel k`,
	"acting change_agent acting":            handed + `; tell k "more"`,
	"acting change_agent idle":              pair + `; answer c1 "x" type=rejected; cancel k`,
	"acting time_up thinking":               reading + `}; time-up r`,
	"acting time_up acting":                 reading + `} call c1 a {}; time-up r`,
	"acting time_up idle":                   reading + `} call c1 a {}; answer c1 "x" type=rejected; time-up r`,
	"acting time_up preparing":              reading + `} call c1 a {}; send "/c" command; answer c1 "x" type=rejected; time-up r`,
	"acting change_agent thinking":          handed + `; cancel k`,
	"acting change_agent preparing":         pair + `; send "/c" command; answer c1 "x" type=rejected; cancel k`,
	"preparing change_agent preparing":      `new agents=x hooks; start x k "P"; send "go"; cancel k`,
	"stranded change_agent stranded":        crew + `; send "go"; kill; attach B; cancel-all`,
	"ending suspend closed":                 ending + `; suspend`,
	"idle go_back preparing":                goingBack,
	"preparing past_found idle":             goingBack + `; past`,
	"preparing past_found preparing":        bringing,
	"preparing past_found thinking":         goingBack + `; send "2"; past`,
	"preparing files_restored idle":         bringing + `; restored`,
	"preparing files_restored preparing":    bringing + `; attach B hooks; send "2"; restored`,
	"preparing files_restored thinking":     bringing + `; send "2"; restored`,
	"preparing abort preparing":             goingBack + `; abort`,

	"thinking compaction_done idle":        squeezed + `; summary fail "x"`,
	"thinking compaction_done preparing":   squeezed + `; send "/c" command; summary fail "x"`,
	"thinking cancel_compaction idle":      squeezed + `; cancel-compaction`,
	"thinking cancel_compaction preparing": squeezed + `; send "/c" command; cancel-compaction`,
}

// samples has an input of each kind.
func samples(w *world) map[Kind]Body {
	fence := w.model
	return map[Kind]Body{
		KindBegin:              Begin{SessionID: "other"},
		KindResume:             Resume{Client: Client{ID: "Z"}},
		KindAttach:             Attach{Client: Client{ID: "Z"}},
		KindDetach:             Detach{ClientID: "A"},
		KindConfigure:          Configure{},
		KindSend:               Send{Message: event.Queued{Prompt: "x"}},
		KindClear:              Clear{Prompt: "SEED"},
		KindAbort:              Abort{},
		KindModelChunk:         ModelChunk{Fence: fence, Chunk: model.Chunk{Text: "x"}},
		KindModelRetry:         ModelRetry{Fence: fence, Err: &model.Error{Msg: "x"}},
		KindModelDone:          ModelDone{Fence: fence},
		KindModelFailed:        ModelFailed{Fence: fence, Err: &model.Error{Msg: "x"}},
		KindToolDone:           ToolDone{Fence: Fence{Turn: fence.Turn, Call: "c1"}},
		KindToolAnswer:         ToolAnswer{RequestID: w.external["c1"]},
		KindPermissionAnswer:   PermissionAnswer{RequestID: "none", Decision: policy.NotAvailable()},
		KindNote:               Note{Payload: event.SessionInfo{}},
		KindStoreFailed:        StoreFailed{Err: errors.New("x")},
		KindClose:              Close{},
		KindSuspend:            Suspend{},
		KindHookDone:           HookDone{ID: 1 << 40},
		KindCompact:            Compact{},
		KindCancelCompaction:   CancelCompaction{},
		KindCompactionDone:     CompactionDone{ID: 1 << 40},
		KindCounted:            Counted{ID: 1 << 40},
		KindArrange:            Arrange{Op: ArrangeNewest},
		KindGoBack:             GoBack{EventID: "none"},
		KindPastFound:          PastFound{ID: 1 << 40},
		KindFilesRestored:      FilesRestored{ID: 1 << 40},
		KindCommandDone:        CommandDone{ID: "none"},
		KindTick:               Tick{},
		KindChangeSchedule:     ChangeSchedule{Op: ScheduleStop, ID: 1},
		KindTimeUp:             TimeUp{Fence: Fence{Turn: fence.Turn, Call: "c1"}},
		KindStartAgent:         StartAgent{Type: "x"},
		KindChangeAgent:        ChangeAgent{Op: AgentCancel, ID: "none"},
		KindPermissionPrepared: PermissionPrepared{Fence: Fence{Turn: fence.Turn, Call: "c1"}},
	}
}

// TestMatrix walks the whole transition table: each listed transition is made by
// a case, and each pair of phase and input that is not listed is refused or
// ignored. That neither changes anything is checked by world.step.
func TestMatrix(t *testing.T) {
	left := map[string]bool{}
	for key := range cases {
		left[key] = true
	}
	for _, phase := range []Phase{Unborn, Idle, Preparing, Thinking, Acting, Stranded, Ending, Closed} {
		for kind, body := range samples(newWorld(t)) {
			rule, listed := table.Get()[phase][kind]
			for _, target := range rule.to {
				key := fmt.Sprintf("%s %s %s", phase, kind, target)
				t.Run(key, func(t *testing.T) {
					commands, ok := cases[key]
					if !ok {
						t.Fatal("no case makes this transition")
					}
					delete(left, key)
					if p := script(t, commands); !p.reached[key] || p.s.Phase() != target {
						t.Errorf("%s\nends in %s, and made %v", commands, p.s.Phase(), p.reached)
					}
				})
			}
			if len(rule.to) > 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s %s", phase, kind), func(t *testing.T) {
				w := newWorld(t)
				if phase != Unborn {
					w = script(t, phases[phase]).world
					body = samples(w)[kind]
				}
				if got := w.s.Phase(); got != phase {
					t.Fatalf("the commands lead to %s", got)
				}
				ready, err := w.step(body)
				var refusal *Refusal
				switch {
				case rule.ignore:
					if err != nil || ready.Result != rule.result {
						t.Errorf("ignored with %v, %v; want %v", ready.Result, err, rule.result)
					}
				case !errors.As(err, &refusal):
					t.Errorf("gave %v; want a refusal (listed: %v)", err, listed)
				case refusal.Msg == "" || refusal.Kind == "":
					t.Errorf("refused without a word: %+v", refusal)
				}
			})
		}
	}
	for key := range left {
		t.Errorf("case %q makes a transition that the table does not list", key)
	}
}

// TestTableNamesAllKinds: a kind that a phase neither lists nor refuses on purpose
// is a kind that was forgotten.
func TestTableNamesAllKinds(t *testing.T) {
	for kind := range samples(newWorld(t)) {
		named := 0
		for _, row := range table.Get() {
			if _, ok := row[kind]; ok {
				named++
			}
		}
		if named == 0 {
			t.Errorf("no phase takes %s", kind)
		}
	}
}
