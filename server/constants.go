package server

import (
	"github.com/transom-run/transom"
)

// The methods about what there is none of here, where that is an answer: nothing
// is scheduled, shared, or run in the background.
var constantMethods = map[string]handler{
	"session.schedule.list":                    settled(noSchedules),
	"session.schedule.stop":                    settled(nothingStopped),
	"session.schedule.hasSelfPaced":            settled(noSelfPaced),
	"session.visibility.get":                   settled(notShared),
	"session.visibility.set":                   settled(notShared),
	"session.telemetry.getEngagementId":        settled(noEngagement),
	"session.telemetry.setFeatureOverrides":    settled(nothingToDo),
	"session.lsp.initialize":                   settled(nothingToDo),
	"session.tasks.list":                       settled(noTasks),
	"session.tasks.refresh":                    settled(nothingApplied),
	"session.tasks.waitForPending":             settled(nothingApplied),
	"session.tasks.getProgress":                settled(noProgress),
	"session.tasks.getCurrentPromotable":       settled(nothingApplied),
	"session.tasks.promoteCurrentToBackground": settled(nothingApplied),
	"session.tasks.promoteToBackground":        settled(notPromoted),
	"session.tasks.cancel":                     settled(notCancelled),
	"session.tasks.remove":                     settled(notRemoved),
	"session.tasks.sendMessage":                settled(notSent),
	"session.tools.updateSubagentSettings":     settled(nothingApplied),

	"session.mcp.headers.handlePendingHeadersRefreshRequest": posted(nothingPending),
}

func noSchedules(*transom.Session, *target) (any, error) {
	return map[string]any{"entries": []any{}}, nil
}

// nothingStopped names no entry: none had the id.
func nothingStopped(*transom.Session, *target) (any, error) { return struct{}{}, nil }

func noSelfPaced(*transom.Session, *target) (any, error) {
	return map[string]any{"hasSelfPaced": false}, nil
}

// notShared: there is no service that shows sessions to others.
func notShared(*transom.Session, *target) (any, error) { return map[string]any{"synced": false}, nil }

// noEngagement: nothing is measured for anybody.
func noEngagement(*transom.Session, *target) (any, error) { return struct{}{}, nil }

// nothingToDo: there is no telemetry to mark, and there are no language servers to
// start.
func nothingToDo(*transom.Session, *target) (any, error) { return nil, nil }

// nothingApplied: there are no sub-agents or tasks that anything could be done to.
func nothingApplied(*transom.Session, *target) (any, error) { return struct{}{}, nil }

func noTasks(*transom.Session, *target) (any, error) { return map[string]any{"tasks": []any{}}, nil }

func noProgress(*transom.Session, *target) (any, error) { return map[string]any{"progress": nil}, nil }

func notPromoted(*transom.Session, *target) (any, error) {
	return map[string]any{"promoted": false}, nil
}

func notCancelled(*transom.Session, *target) (any, error) {
	return map[string]any{"cancelled": false}, nil
}

func notRemoved(*transom.Session, *target) (any, error) {
	return map[string]any{"removed": false}, nil
}

func notSent(*transom.Session, *target) (any, error) {
	return map[string]any{"sent": false, "error": "there is no background task of that id"}, nil
}
