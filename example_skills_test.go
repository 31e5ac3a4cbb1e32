package transom_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/model/scripted"
)

// A session is told of the skills of a directory. The model loads one, and its text
// comes into the conversation.
func ExampleSession_Skills() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "skills")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	text := "---\nname: release-notes\ndescription: How release notes are written here.\n---\n\nOne line a change, newest first.\n"
	if err := os.MkdirAll(filepath.Join(dir, "release-notes"), 0o755); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "release-notes", "SKILL.md"), []byte(text), 0o644); err != nil {
		log.Fatal(err)
	}

	rt := play(scripted.Call("skill", `{"skill":"release-notes"}`), scripted.Say("- Skills are served."))
	defer rt.Close(ctx)
	s, err := rt.CreateSession(ctx, transom.SessionConfig{Skills: transom.SkillConfig{Directories: []string{dir}}})
	if err != nil {
		log.Fatal(err)
	}
	for _, k := range s.Skills() {
		fmt.Printf("%s (%s): %s\n", k.Name, k.Source, k.Description)
	}
	answer, err := s.SendAndWait(ctx, transom.Message{Prompt: "Write the release notes."})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Content)
	invoked, err := s.InvokedSkills()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %s", invoked[0].Name, invoked[0].Content)
	// Output:
	// release-notes (custom): How release notes are written here.
	// - Skills are served.
	// release-notes: One line a change, newest first.
}
