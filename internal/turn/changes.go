package turn

import (
	"encoding/json"
	"slices"

	"github.com/transom-run/transom/event"
)

// foldChanges counts what a call wrote: a tool that changes files tells of it in
// its telemetry, the lines as metrics and the absolute path of the file beside them.
func (d *Durable) foldChanges(p event.ToolComplete) {
	if !p.Success || len(p.ToolTelemetry) == 0 {
		return
	}
	var t struct {
		Metrics struct {
			Added   int64 `json:"linesAdded"`
			Removed int64 `json:"linesRemoved"`
		} `json:"metrics"`
		Restricted struct {
			Path string `json:"filePath"`
		} `json:"restrictedProperties"`
	}
	if json.Unmarshal(p.ToolTelemetry, &t) != nil {
		return // a host's tool may tell anything
	}
	d.Changes.LinesAdded += max(t.Metrics.Added, 0)
	d.Changes.LinesRemoved += max(t.Metrics.Removed, 0)
	if path := t.Restricted.Path; path != "" && !slices.Contains(d.Changes.FilesModified, path) {
		d.Changes.FilesModified = append(slices.Clip(d.Changes.FilesModified), path)
	}
}
