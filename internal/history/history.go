// Package history says which records of a log are still part of a session's
// history.
//
// A truncation is one more record. It names an event, and from then on the public
// records from that event to the boundary are behind it: in the log for people to
// read, and nowhere else.
//
//	log      e1  e2  e3  e4  ✂e3  e5
//	history  e1  e2               e5
//
// A later boundary may lie before an earlier one and takes all of it along.
//
// # Ownership
//
// An [Index] belongs to one goroutine while records are added to it. It keeps 16
// bytes for each public event that is part of the history, and nothing of its text.
//
// # Errors
//
// A boundary whose event cannot be found, since that record is damaged, is put
// where the count that the boundary holds says.
package history

import (
	"hash/fnv"
	"sort"
	"strings"

	"github.com/transom-run/transom/event"
)

// Index is the fold of a log that says what lies behind a boundary. Places are any
// numbers that grow along the log. The zero Index is that of an empty log.
type Index struct {
	marks []mark
	cuts  []Cut
}

// mark is a public event that is part of the history.
type mark struct {
	place int64
	id    uint64
}

// Cut is a stretch of a log that is no part of the history: From and what follows
// it, up to To and without it.
type Cut struct{ From, To int64 }

// Add folds a record.
func (x *Index) Add(place int64, e *event.Event) {
	switch {
	case e.Ephemeral:
	case e.Type == event.TypeTruncated:
		if p, err := event.As[event.Truncated](e); err == nil {
			x.cut(place, p)
		}
	case e.Public():
		x.marks = append(x.marks, mark{place, sum(e.ID)})
	}
}

func (x *Index) cut(place int64, p event.Truncated) {
	at := x.find(p.UpToEventID)
	if at < 0 {
		at = int(min(max(p.Kept, 0), int64(len(x.marks))))
	}
	from := place
	if at < len(x.marks) {
		from = x.marks[at].place
	}
	x.marks = x.marks[:at]
	for len(x.cuts) > 0 && x.cuts[len(x.cuts)-1].From >= from {
		x.cuts = x.cuts[:len(x.cuts)-1]
	}
	if from < place {
		x.cuts = append(x.cuts, Cut{from, place})
	}
}

// find returns the number of an event among those that are part of the history;
// -1 where it is none of them.
func (x *Index) find(id string) int {
	h := sum(id)
	for i := len(x.marks) - 1; i >= 0; i-- {
		if x.marks[i].id == h {
			return i
		}
	}
	return -1
}

// Find returns the place of an event that is part of the history, and how many are
// before it.
func (x *Index) Find(id string) (place int64, before int, ok bool) {
	i := x.find(id)
	if i < 0 {
		return 0, 0, false
	}
	return x.marks[i].place, i, true
}

// Shown returns the number of public events that are part of the history.
func (x *Index) Shown() int { return len(x.marks) }

// Cuts returns the stretches that are no part of the history, in order. The caller
// must not change them.
func (x *Index) Cuts() []Cut { return x.cuts }

// Behind returns the stretch of cuts that a place lies in.
func Behind(cuts []Cut, place int64) (Cut, bool) {
	i := sort.Search(len(cuts), func(i int) bool { return cuts[i].To > place })
	if i < len(cuts) && cuts[i].From <= place {
		return cuts[i], true
	}
	return Cut{}, false
}

// Hidden reports whether the record at a place is no part of the history.
func (x *Index) Hidden(place int64) bool {
	_, hidden := Behind(x.cuts, place)
	return hidden
}

// sum is an event's id in 8 bytes; hosts may write it in capitals.
func sum(id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(strings.ToLower(id)))
	return h.Sum64()
}
