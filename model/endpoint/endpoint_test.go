package endpoint

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfterDate(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for v, want := range map[string]time.Duration{
		"Fri, 02 Jan 2026 03:04:15 GMT": 10 * time.Second,
		"Fri, 02 Jan 2026 03:04:01 GMT": 0,
		"soon":                          0,
		"-3":                            0,
		"NaN":                           0,
		"0.5":                           500 * time.Millisecond,
	} {
		if got := retryAfter(http.Header{"Retry-After": {v}}, now); got != want {
			t.Errorf("%q: %v, want %v", v, got, want)
		}
	}
}
