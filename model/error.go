package model

import (
	"fmt"
	"time"
)

// ErrorKind sorts failures of providers. Its values are the error types that
// clients see in session.error.
type ErrorKind string

// The kinds of failure.
const (
	Authentication ErrorKind = "authentication"
	RateLimit      ErrorKind = "rate_limit"
	Query          ErrorKind = "query" // the request, the endpoint or the network
	Quota          ErrorKind = "quota"
	ContextLimit   ErrorKind = "context_limit"
	Setup          ErrorKind = "model_setup" // no model is configured
)

// Error is a failed attempt.
type Error struct {
	Kind ErrorKind
	// Status is the HTTP status; 0 where there was no answer.
	Status int
	// Code is the provider's own code, such as "insufficient_quota".
	Code string
	// Msg is for people: what happened, at which endpoint, what to check.
	Msg string
	// Endpoint is the URL asked, without user info or query.
	Endpoint string
	// Retryable: the same request may succeed a little later.
	Retryable bool
	// RetryAfter is the wait that the provider asked for; 0 where it did not.
	RetryAfter time.Duration
	// Err is the cause, where there is one below.
	Err error
}

func (e *Error) Error() string {
	if e.Msg != "" {
		return e.Msg
	}
	return fmt.Sprintf("model request failed: %v", e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
