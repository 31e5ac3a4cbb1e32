package transom_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/event"
	"github.com/transom-run/transom/model/scripted"
)

// userMessages are the ids of what users said, oldest first.
func userMessages(s *transom.Session) []string {
	lines, err := s.Messages()
	if err != nil {
		log.Fatal(err)
	}
	var ids []string
	for _, line := range lines {
		if e, err := event.Decode(line); err == nil && e.Type == event.TypeUserMessage {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

func say(ctx context.Context, s *transom.Session, prompt string) {
	answer, err := s.SendAndWait(ctx, transom.Message{Prompt: prompt})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Content)
}

// A truncation takes the session back to before an event: what came since is gone
// from the history and from what the model sees.
func ExampleHistory_Truncate() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	rt := play(scripted.Say("Noted."), scripted.Say("That was a mistake."), scripted.Say("Better."))
	defer rt.Close(ctx)
	s, err := rt.CreateSession(ctx, transom.SessionConfig{})
	if err != nil {
		log.Fatal(err)
	}
	say(ctx, s, "Remember 17.")
	say(ctx, s, "Forget it.")
	if _, err := s.History().Truncate(ctx, userMessages(s)[1]); err != nil {
		log.Fatal(err)
	}
	fmt.Println("in the window now:", s.Info().Messages, "messages")
	say(ctx, s, "Add 25.")
	// Output:
	// Noted.
	// That was a mistake.
	// in the window now: 2 messages
	// Better.
}

// RewindPoints lists where a user may want to go back to.
func ExampleHistory_RewindPoints() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	rt := play(scripted.Say("One."), scripted.Say("Two."))
	defer rt.Close(ctx)
	s, err := rt.CreateSession(ctx, transom.SessionConfig{})
	if err != nil {
		log.Fatal(err)
	}
	say(ctx, s, "First")
	say(ctx, s, "Second")
	points, err := s.History().RewindPoints()
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range points {
		fmt.Println("before", p.Text)
	}
	done, err := s.History().Rewind(ctx, points[0].EventID, false)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(done.Outcome, len(userMessages(s)))
	// Output:
	// One.
	// Two.
	// before First
	// before Second
	// success 0
}

// A fork is a session of its own, with the same past.
func ExampleRuntime_ForkSession() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	rt := play(scripted.Say("Noted."), scripted.Say("In the copy."))
	defer rt.Close(ctx)
	s, err := rt.CreateSession(ctx, transom.SessionConfig{})
	if err != nil {
		log.Fatal(err)
	}
	say(ctx, s, "Remember 17.")
	id, err := rt.ForkSession(ctx, transom.Fork{SessionID: s.ID(), Name: "another way"})
	if err != nil {
		log.Fatal(err)
	}
	other, err := rt.ResumeSession(ctx, id, transom.ResumeConfig{})
	if err != nil {
		log.Fatal(err)
	}
	say(ctx, other, "Add 25.")
	fmt.Println(other.Info().Title, len(userMessages(other)), "and", len(userMessages(s)))
	// Output:
	// Noted.
	// In the copy.
	// another way 2 and 1
}

// ReadPersisted reads a stored session without loading it.
func ExampleRuntime_ReadPersisted() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	rt := play(scripted.Say("Noted."))
	defer rt.Close(ctx)
	s, err := rt.CreateSession(ctx, transom.SessionConfig{ID: "one"})
	if err != nil {
		log.Fatal(err)
	}
	say(ctx, s, "Remember 17.")
	if err := s.Close(ctx); err != nil {
		log.Fatal(err)
	}
	page, err := rt.ReadPersisted(ctx, transom.PersistedQuery{SessionID: "one", Max: 2})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range page.Events {
		fmt.Println(e.Type)
	}
	fmt.Println("more:", page.More)
	// Output:
	// Noted.
	// session.start
	// user.message
	// more: true
}
