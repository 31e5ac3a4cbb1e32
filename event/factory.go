package event

// The types of the payloads below.
const (
	TypeFactoryUpdated = "factory.run_updated"
	TypeFactoryStarted = "factory.run_started"
	TypeFactorySettled = "factory.run_settled"
)

// FactoryUpdated says that a factory's run has changed: what it says can be read
// anew.
type FactoryUpdated struct {
	RunID    string `json:"runId"`
	Revision int64  `json:"revision"`
}

// FactoryStarted says that an attempt at a run has begun.
type FactoryStarted struct {
	RunID       string `json:"runId"`
	FactoryName string `json:"factoryName"`
	Attempt     int    `json:"attempt"`
}

// FactorySettled says that an attempt at a run has ended.
type FactorySettled struct {
	RunID             string `json:"runId"`
	Status            string `json:"status"`
	FailureType       string `json:"failureType,omitempty"`
	ElapsedMs         int64  `json:"elapsedMs"`
	ConsumedSubagents int64  `json:"consumedSubagents"`
	ConsumedNanoAIU   int64  `json:"consumedNanoAiu"`
}

// EventType returns "factory.run_updated".
func (FactoryUpdated) EventType() string { return TypeFactoryUpdated }

// EventType returns "factory.run_started".
func (FactoryStarted) EventType() string { return TypeFactoryStarted }

// EventType returns "factory.run_settled".
func (FactorySettled) EventType() string { return TypeFactorySettled }

func (FactoryUpdated) ephemeralEvent() {}
func (FactoryStarted) ephemeralEvent() {}
func (FactorySettled) ephemeralEvent() {}
