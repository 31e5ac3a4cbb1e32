package event

// TypeRemoteSteerableChanged is the type of [RemoteSteerableChanged].
const TypeRemoteSteerableChanged = "session.remote_steerable_changed"

// RemoteSteerableChanged says whether whoever follows the session from afar may
// steer it, as the host last told. It is persisted.
type RemoteSteerableChanged struct {
	RemoteSteerable bool `json:"remoteSteerable"`
}

// EventType returns "session.remote_steerable_changed".
func (RemoteSteerableChanged) EventType() string { return TypeRemoteSteerableChanged }
