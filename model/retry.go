package model

import (
	"fmt"
	"time"
)

// RetryPolicy decides whether a failed attempt is repeated and after which wait.
// It holds no state: the caller counts. The zero value is [DefaultRetry];
// docs/models.md has its table.
type RetryPolicy struct {
	// MaxAttempts counts all attempts, the first included.
	MaxAttempts int
	// Base is the wait after the first failure. It doubles with each, up to Cap.
	Base, Cap time.Duration
	// RateLimitBase and RateLimitCap are the same for failures of kind RateLimit.
	RateLimitBase, RateLimitCap time.Duration
	// MaxRetryAfter is the longest wait that is accepted from a provider. Beyond
	// it the request fails at once: nobody waits an hour in front of a prompt.
	MaxRetryAfter time.Duration
}

// DefaultRetry is what a zero field of a policy stands for.
var DefaultRetry = RetryPolicy{
	MaxAttempts:   5,
	Base:          500 * time.Millisecond,
	Cap:           8 * time.Second,
	RateLimitBase: 2 * time.Second,
	RateLimitCap:  20 * time.Second,
	MaxRetryAfter: 60 * time.Second,
}

// emptyAnswerAttempts is the number of attempts that may end empty.
const emptyAnswerAttempts = 2

// Next is asked after attempt (from 1) failed with err. Where again is true the
// caller waits and tries once more. After the last attempt again is false and
// wait is 0: nobody waits for nothing. rand is in [0,1) and spreads the waits
// over ±25 %, so that sessions that failed together do not come back together; a
// wait that the provider asked for is kept, and only made longer, by up to 10 %.
func (p RetryPolicy) Next(attempt int, err *Error, rand float64) (wait time.Duration, again bool) {
	p = p.filled()
	if err == nil || !err.Retryable || attempt >= p.MaxAttempts {
		return 0, false
	}
	if err.Code == CodeEmptyAnswer && attempt >= emptyAnswerAttempts {
		return 0, false
	}
	if err.RetryAfter > p.MaxRetryAfter {
		return 0, false
	}
	if err.RetryAfter > 0 {
		return err.RetryAfter + time.Duration(float64(err.RetryAfter)*0.1*rand), true
	}
	wait, limit := p.Base, p.Cap
	if err.Kind == RateLimit {
		wait, limit = p.RateLimitBase, p.RateLimitCap
	}
	for i := 1; i < attempt && wait < limit; i++ {
		wait *= 2
	}
	wait = min(wait, limit)
	return time.Duration(float64(wait) * (0.75 + 0.5*rand)), true
}

// Final is the error to show when no attempt is left: err, with the number of
// attempts and the time waited between them, or with the wait that was refused.
func (p RetryPolicy) Final(attempts int, waited time.Duration, err *Error) *Error {
	p = p.filled()
	out := *err
	switch {
	case err.Retryable && err.RetryAfter > p.MaxRetryAfter:
		out.Msg = fmt.Sprintf("%s The provider asks to wait %s, longer than the limit of %s: send the prompt again later.",
			err.Error(), err.RetryAfter.Round(time.Second), p.MaxRetryAfter)
	case attempts > 1:
		out.Msg = fmt.Sprintf("%s Gave up after %d attempts and %.1f seconds of waiting between them.",
			err.Error(), attempts, waited.Seconds())
	}
	return &out
}

func (p RetryPolicy) filled() RetryPolicy {
	if p.MaxAttempts == 0 {
		p.MaxAttempts = DefaultRetry.MaxAttempts
	}
	for _, f := range []struct{ v, d *time.Duration }{
		{&p.Base, &DefaultRetry.Base}, {&p.Cap, &DefaultRetry.Cap},
		{&p.RateLimitBase, &DefaultRetry.RateLimitBase}, {&p.RateLimitCap, &DefaultRetry.RateLimitCap},
		{&p.MaxRetryAfter, &DefaultRetry.MaxRetryAfter},
	} {
		if *f.v == 0 {
			*f.v = *f.d
		}
	}
	return p
}
