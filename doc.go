// Package transom is an agent runtime whose hosts control what the model
// remembers.
//
// A host opens a [Runtime], creates a [Session] with tools, and sends prompts.
// Transom talks to the model, runs the tools, asks for permission, keeps the
// event log, and tells every attached client what happens. From inside a tool
// call the host may replace the conversation without replacing the session:
//
//	var s *transom.Session
//	clear, err := tool.Func("clear_context", "Clear the conversation and start afresh",
//		func(ctx context.Context, in struct{ Prompt string `json:"prompt"` }) (string, error) {
//			n, err := s.History().ClearContext(ctx, in.Prompt)
//			return fmt.Sprintf("Cleared %d messages.", n), err
//		})
//	clear.IsTerminal = true
//	s, err = rt.CreateSession(ctx, transom.SessionConfig{
//		Tools: []tool.Tool{clear}, OnPermission: transom.ApproveAll,
//	})
//	answer, err := s.SendAndWait(ctx, transom.Message{Prompt: "…"})
//
// The seed that the tool gave starts the fresh window and has its turn as soon as
// the running one has ended; SendAndWait returns after that.
//
// # Ownership
//
// A Session value is one attachment; several may be attached to one session, from
// this process and over connections. Close detaches, and ends the session where
// it was the last.
//
// # Ordering
//
// Commands of one session take effect in the order in which they were posted.
// Each is written to the log, then published, then acted upon, then answered.
// A clear is on the disk when ClearContext returns.
//
// # Errors
//
// Every error is an *[Error] with a [Kind]. What goes wrong inside a tool is a
// result for the model; what goes wrong with the model is a session.error event.
package transom
