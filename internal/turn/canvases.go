package turn

import (
	"slices"

	"github.com/transom-run/transom/event"
)

// foldCanvas keeps a canvas that is open; one that is shown anew is the newest.
func (d *Durable) foldCanvas(p event.CanvasRecorded) {
	d.foldUncanvas(event.CanvasRemoved{InstanceID: p.InstanceID})
	d.Canvases = append(slices.Clip(d.Canvases), p)
}

func (d *Durable) foldUncanvas(p event.CanvasRemoved) {
	is := func(c event.CanvasRecorded) bool { return c.InstanceID == p.InstanceID }
	if slices.ContainsFunc(d.Canvases, is) {
		d.Canvases = slices.DeleteFunc(slices.Clone(d.Canvases), is)
	}
}
