package main

import (
	"errors"
	"fmt"
)

// checks are the assertions that need more than a pattern; a case names them
// under expect.also.
var checks = map[string]func(*Observation) error{
	"usage falls after the clear": usageFalls,
	"handlers saw valid input":    handlersSawValidInput,
}

// usageFalls: the window figures restart with the new window, so the first
// figures after a clear are lower than the last ones before it.
func usageFalls(o *Observation) error {
	var before, after float64
	cleared := false
	for _, e := range o.Events["a"] {
		switch e.Type {
		case "session.context_cleared":
			cleared = true
		case "session.usage_info":
			tokens, _ := e.Data["currentTokens"].(float64)
			if !cleared {
				before = tokens
			} else if after == 0 {
				after = tokens
			}
		}
	}
	if before == 0 || after == 0 {
		return errors.New("session.usage_info with currentTokens was not seen on both sides of the clear")
	}
	if after >= before {
		return fmt.Errorf("session.usage_info says %v tokens before the clear and %v after it", before, after)
	}
	return nil
}

// handlersSawValidInput: a call whose input does not hold against the schema
// never reaches the permission handler or the tool handler. Such calls are the
// ones whose id starts with "bad".
func handlersSawValidInput(o *Observation) error {
	for _, e := range o.Events["a"] {
		id, _ := e.Data["toolCallId"].(string)
		if request, ok := e.Data["permissionRequest"].(map[string]any); ok && id == "" {
			id, _ = request["toolCallId"].(string)
		}
		asks := e.Type == "external_tool.requested" || e.Type == "permission.requested"
		if asks && len(id) > 2 && id[:3] == "bad" {
			return fmt.Errorf("%s was sent for call %s, whose input is invalid", e.Type, id)
		}
	}
	return nil
}
