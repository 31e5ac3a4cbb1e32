package event

// TypeExtensionsLoaded is the type of the payload below.
const TypeExtensionsLoaded = "session.extensions_loaded"

// ExtensionsLoaded says how the extensions of a session stand: once they were looked
// for, and when one was switched on or off, or ended by itself.
type ExtensionsLoaded struct {
	Extensions []ExtensionInfo `json:"extensions"`
}

// ExtensionInfo is an extension. Status is "running", "failed" or "disabled".
type ExtensionInfo struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Source string `json:"source"` // "project" or "user"
	Status string `json:"status"`
}

// EventType returns "session.extensions_loaded".
func (ExtensionsLoaded) EventType() string { return TypeExtensionsLoaded }

func (ExtensionsLoaded) ephemeralEvent() {}
