package window

import (
	"slices"

	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model"
)

// skill adds the text of a skill that the model asked for, behind the results of
// the batch that it was asked for in. Text of other skills came another way: in a
// prompt, or in the system message.
func (w *Window) skill(e *event.Event) error {
	p, err := event.As[event.SkillInvoked](e)
	if err != nil || p.Trigger != event.SkillByAgent || w.seed != nil {
		return err // a seed that waits stands alone
	}
	m := model.Message{Role: model.User, Text: SkillContext(p.Name, p.Path, p.Content)}
	if w.batch == nil {
		w.add(m)
		return nil
	}
	w.later = append(slices.Clip(w.later), m)
	return nil
}
