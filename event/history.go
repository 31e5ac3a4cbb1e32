package event

// The types of the events and records about a session's history.
const (
	TypeSnapshotRewind = "session.snapshot_rewind"
	TypeTruncated      = "transom.truncated"
	TypeTracking       = "transom.tracking"
	TypeFileCaptured   = "transom.file_captured"
	TypeRewindBegun    = "transom.rewind_begun"
	TypeRewindDropped  = "transom.rewind_dropped"
)

// SnapshotRewind tells clients that the event UpToEventID and all events after it
// are no longer part of the history.
type SnapshotRewind struct {
	UpToEventID   string `json:"upToEventId"`
	EventsRemoved int64  `json:"eventsRemoved"`
}

// Truncated is the boundary: the public records from UpToEventID to this one are no
// part of the history and of the window any more.
type Truncated struct {
	UpToEventID string `json:"upToEventId"`
	// Kept is how many public events the history has before UpToEventID; it finds
	// the place where that event's own record cannot be read.
	Kept int64 `json:"kept"`
	// Restored are the paths whose files are again as they were before
	// UpToEventID.
	Restored []string `json:"restored,omitempty"`
}

// Tracking says that the session captures the files that its tools change, from
// its first turn on.
type Tracking struct{}

// FileCaptured is a file as it was just before a tool of Transom's wrote to it.
type FileCaptured struct {
	Path   string    `json:"path"` // absolute, every link followed
	Before FileImage `json:"before"`
	After  string    `json:"after"`           // hash of what the tool writes
	Lost   bool      `json:"lost,omitempty"`  // Before could not be kept
	Added  int       `json:"added,omitempty"` // lines
	Gone   int       `json:"removed,omitempty"`
}

// FileImage is what a file held: the hash of its bytes, "" where there was none,
// and its permissions.
type FileImage struct {
	Hash string `json:"hash,omitempty"`
	Mode uint32 `json:"mode,omitempty"`
}

// RewindBegun says that files are being brought back, and which: whoever finds it
// without the boundary that follows it completes the rewind.
type RewindBegun struct {
	EventID string        `json:"eventId"`
	Files   []FileRestore `json:"files"`
}

// FileRestore is a file to be brought back.
type FileRestore struct {
	Path string    `json:"path"`
	To   FileImage `json:"to"`
	// From are the hashes that the file may have now, "" for none: any other means
	// that somebody else has changed it since.
	From []string `json:"from"`
	Lost bool     `json:"lost,omitempty"` // To was not kept
}

// RewindDropped says that a rewind was given up, and its files put back.
type RewindDropped struct{}

// EventType returns "session.snapshot_rewind".
func (SnapshotRewind) EventType() string { return TypeSnapshotRewind }

// EventType returns "transom.truncated".
func (Truncated) EventType() string { return TypeTruncated }

// EventType returns "transom.tracking".
func (Tracking) EventType() string { return TypeTracking }

// EventType returns "transom.file_captured".
func (FileCaptured) EventType() string { return TypeFileCaptured }

// EventType returns "transom.rewind_begun".
func (RewindBegun) EventType() string { return TypeRewindBegun }

// EventType returns "transom.rewind_dropped".
func (RewindDropped) EventType() string { return TypeRewindDropped }

func (SnapshotRewind) ephemeralEvent() {}
