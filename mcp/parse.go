package mcp

import (
	"encoding/json"
	"fmt"
)

// Parse reads a server's configuration, a JSON object as hosts and files write it.
// Members that it does not know are passed over.
func Parse(raw json.RawMessage) (Server, error) {
	var s Server
	if err := json.Unmarshal(raw, &s); err != nil {
		return Server{}, err
	}
	switch s.Transport() {
	case "stdio", "http", "sse":
	default:
		return Server{}, fmt.Errorf("its type %q is none of stdio, local, http and sse", s.Type)
	}
	return s, nil
}
