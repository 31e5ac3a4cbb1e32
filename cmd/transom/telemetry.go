package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/transom-run/transom"
	"github.com/transom-run/transom/telemetry"
	"github.com/transom-run/transom/trace"
)

// exportTime bounds the export of what is left at the end of the process.
const exportTime = 2 * time.Second

// observer makes what exports traces and metrics, where the environment asks for
// it; nil where it does not, or asks for what cannot be: then the log says so, and
// sessions go on without. end exports what is left.
func observer(log *slog.Logger) (o trace.Observer, end func()) {
	none := func() {}
	cfg, on, err := telemetry.FromEnv(os.Getenv)
	if err == nil && on {
		cfg.Version, cfg.Logger = transom.Version, log
		var t *telemetry.Telemetry
		if t, err = telemetry.New(cfg); err == nil {
			return t, func() {
				ctx, cancel := context.WithTimeout(context.Background(), exportTime)
				defer cancel()
				if err := t.Shutdown(ctx); err != nil {
					log.Warn("telemetry is not complete", "error", err)
				}
			}
		}
	}
	if err != nil {
		log.Error("there is no telemetry", "error", err)
	}
	return nil, none
}
