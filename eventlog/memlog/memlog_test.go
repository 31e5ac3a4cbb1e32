package memlog_test

import (
	"testing"

	"github.com/transom-run/transom/eventlog"
	"github.com/transom-run/transom/eventlog/eventlogtest"
	"github.com/transom-run/transom/eventlog/memlog"
)

var (
	_ eventlog.Verifier     = (*memlog.Log)(nil)
	_ eventlog.Checkpointer = (*memlog.Log)(nil)
)

func TestConformance(t *testing.T) {
	eventlogtest.Run(t, func(*testing.T) eventlog.Store { return memlog.New() }, eventlogtest.Options{})
}
