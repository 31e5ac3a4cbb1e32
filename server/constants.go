package server

import (
	"github.com/transom-run/transom"
)

// The methods about what there is none of here, where that is an answer: nothing
// is shared.
func constantMethods() map[string]handler {
	return map[string]handler{
		"session.visibility.get":                settled(notShared),
		"session.visibility.set":                settled(notShared),
		"session.telemetry.getEngagementId":     settled(noEngagement),
		"session.telemetry.setFeatureOverrides": settled(nothingToDo),
		"session.lsp.initialize":                settled(nothingToDo),

		"session.mcp.headers.handlePendingHeadersRefreshRequest": posted(nothingPending),
	}
}

// notShared: there is no service that shows sessions to others.
func notShared(*transom.Session, *target) (any, error) { return map[string]any{"synced": false}, nil }

// noEngagement: nothing is measured for anybody.
func noEngagement(*transom.Session, *target) (any, error) { return struct{}{}, nil }

// nothingToDo: there is no telemetry to mark, and there are no language servers to
// start.
func nothingToDo(*transom.Session, *target) (any, error) { return nil, nil }
