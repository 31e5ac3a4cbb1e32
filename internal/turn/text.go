package turn

import (
	"strconv"
	"strings"
	"time"

	"github.com/transom-run/transom/tool"
)

// toolsGone tells the model that tools were withdrawn. Hosts' recordings pin the
// text (test "multi-client" of the SDKs).
func toolsGone(names []string) string {
	return "<tools_changed_notice>\nTools no longer available: " + strings.Join(names, ", ") +
		"\n\nImportant: Do not attempt to call tools that are no longer available unless you've been notified that they're available again.\n</tools_changed_notice>\n\n"
}

// gone is the result of a call whose tool left with its client.
func gone(name string) tool.Result {
	text := "The tool '" + name + "' did not run: the client that provides it has disconnected."
	return tool.Result{Text: text, Type: tool.Failure}
}

// deniedByHook is what the model reads of a call that a hook denied. Hosts'
// recordings pin it (test "hooks" of the SDKs).
func deniedByHook(reason string) string {
	if reason == "" {
		reason = "No reason provided"
	}
	return "Denied by preToolUse hook: " + reason
}

// DeniedByHook is what the model reads of a call that a hook of some kind kept from
// running.
func DeniedByHook(kind HookKind, reason string) string {
	return "Denied by " + string(kind) + " hook: " + reason
}

// compactionPrompt asks the model for a summary. Hosts' recordings pin how it
// begins (test "compaction" of the SDKs).
func compactionPrompt(instructions string) string {
	text := "Please create a detailed summary of the conversation so far. The history is being compacted, so that what you write takes the place of the messages above, and nothing else of them is kept but the user's own words.\n\n" +
		"Write what somebody needs who goes on from here, in these parts:\n" +
		"<overview> what the user wants, and how far it has come\n" +
		"<history> what was done, in order, with what came of it\n" +
		"<work_done> what exists now: files, results, decisions\n" +
		"<technical_details> facts that were found out and would be costly to find again\n" +
		"<important_files> files that matter, and why\n" +
		"<next_steps> what is to be done next\n" +
		"<checkpoint_title> a title of a few words\n\n" +
		"Close each part with its end tag. Call no tool."
	if instructions != "" {
		text += "\n\nThe user asks for this in particular: " + instructions
	}
	return text
}

// agentNotice tells the model that an agent which worked in the background has
// ended. Hosts' recordings pin the first text (test "subagent_hooks" of the SDKs).
func agentNotice(a *Agent) string {
	text := "has completed successfully. Use read_agent with agent_id \"" + a.ID + "\" to retrieve the full results."
	if a.Status == AgentFailed {
		text = "has failed. Use read_agent with agent_id \"" + a.ID + "\" to read why."
	}
	return "<system_notification>\nAgent \"" + a.ID + "\" (" + a.Type + ") " + text + "\n</system_notification>"
}

// agentStarted is the result of starting an agent in the background. Hosts'
// recordings pin how it begins (test "subagent_hooks" of the SDKs).
func agentStarted(id string) string {
	return "Agent started in background with agent_id: " + id + ". You'll be notified when it completes. Tell the user you're waiting and end your response, or continue unrelated work until notified."
}

// agentStatus is what read_agent tells of an agent. Hosts' recordings pin the form
// for one that has finished (test "subagent_hooks" of the SDKs): a turn in it is a
// message that it was sent later.
func agentStatus(a *Agent, live bool, at time.Time) string {
	verb, end := "Agent is still running", at
	switch a.standing(live) {
	case AgentCompleted:
		verb, end = "Agent completed", a.Ended
	case AgentFailed:
		verb, end = "Agent failed", a.Ended
	case AgentCancelled:
		verb, end = "Agent cancelled", a.Ended
	}
	if end.IsZero() {
		end = at
	}
	took := strconv.FormatFloat(max(0, end.Sub(a.Started).Seconds()), 'f', 0, 64)
	text := verb + ". agent_id: " + a.ID + ", agent_type: " + a.Type + ", status: " + a.standing(live) + ", description: " + a.Description +
		", elapsed: " + took + "s, total_turns: " + strconv.Itoa(max(0, a.Turns-1)) + ", duration: " + took + "s"
	switch {
	case a.standing(live) == AgentFailed:
		why := a.Error
		if why == "" {
			why = agentInterrupted
		}
		text += "\n\n" + why
	case !live && a.Answer != "":
		text += "\n\n" + a.Answer
	}
	return text
}

// agentInterrupted is why an agent failed whose process, or whose client, is gone.
const agentInterrupted = "The agent was interrupted before it had finished."
