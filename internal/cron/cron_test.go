package cron

import (
	"strings"
	"testing"
	"time"
)

func TestNext(t *testing.T) {
	for _, c := range []struct {
		expr, tz, after string
		want            string // several, in order; "never" is none
	}{
		{"* * * * *", "", "2026-01-02T03:04:05Z", "2026-01-02T03:05:00Z 2026-01-02T03:06:00Z"},
		{"*/20 * * * *", "UTC", "2026-01-02T03:20:00Z", "2026-01-02T03:40:00Z 2026-01-02T04:00:00Z"},
		{"5/20 * * * *", "", "2026-01-02T03:00:00Z", "2026-01-02T03:05:00Z 2026-01-02T03:25:00Z 2026-01-02T03:45:00Z 2026-01-02T04:05:00Z"},
		{"0 9 * * MON-FRI", "", "2026-01-02T10:00:00Z", "2026-01-05T09:00:00Z 2026-01-06T09:00:00Z"},
		{"0 9 * * mon-fri", "Europe/Berlin", "2026-01-02T10:00:00Z", "2026-01-05T08:00:00Z"},
		{"0 0 * * 7", "", "2026-01-02T00:00:00Z", "2026-01-04T00:00:00Z 2026-01-11T00:00:00Z"},
		{"0 0 * * 0", "", "2026-01-02T00:00:00Z", "2026-01-04T00:00:00Z"},
		{"0 0 1,15 * *", "", "2026-01-02T00:00:00Z", "2026-01-15T00:00:00Z 2026-02-01T00:00:00Z"},
		{"0 0 13 * FRI", "", "2026-01-02T00:00:00Z", "2026-01-09T00:00:00Z 2026-01-13T00:00:00Z"}, // either day
		{"0 0 */2 * FRI", "", "2026-01-02T00:00:00Z", "2026-01-09T00:00:00Z"},                     // both, as in crontab(5)
		{"0 0 29 2 *", "", "2026-01-02T00:00:00Z", "2028-02-29T00:00:00Z"},
		{"0 0 29 FEB *", "", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"59 23 31 12 *", "", "2026-12-31T23:59:00Z", "2027-12-31T23:59:00Z"},
		{"0 0 31 2 *", "", "2026-01-02T00:00:00Z", "never"},
		{"30 2 28-30 3 *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"}, // skipped on the 29th
		{"30 2 25 10 *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z 2026-10-25T01:30:00Z"},
		{"0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", "2018-11-05T02:00:00Z"}, // no midnight on the 4th
		{"15 * * * *", "Asia/Kolkata", "2026-01-01T00:00:00Z", "2026-01-01T00:45:00Z"},
	} {
		s, err := Parse(c.expr, c.tz)
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		at, err := time.Parse(time.RFC3339, c.after)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range strings.Fields(c.want) {
			next, ok := s.Next(at)
			got := "never"
			if ok {
				got = next.UTC().Format(time.RFC3339)
			}
			if got != want {
				t.Errorf("%s in %q after %s: %s, want %s", c.expr, c.tz, at.UTC(), got, want)
			}
			at = next
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct{ expr, tz, says string }{
		{"", "", "0 fields"}, {"* * * *", "", "4 fields"}, {"* * * * * *", "", "6 fields"},
		{"60 * * * *", "", "minute"}, {"* 24 * * *", "", "hour"}, {"* * 0 * *", "", "day of the month"}, {"* * * 13 *", "", "month"},
		{"* * * * 8", "", "day of the week"}, {"* * * * MON-", "", "day of the week"}, {"5-3 * * * *", "", "minute"}, {"*/0 * * * *", "", "step"},
		{"*/-1 * * * *", "", "step"}, {"+1 * * * *", "", "minute"}, {"1,,2 * * * *", "", "minute"}, {"* * * * *", "Nowhere/Land", "time zone"},
		{"* * * * *", "Local", "time zone"}, {"@daily", "", "1 fields"},
	} {
		if _, err := Parse(c.expr, c.tz); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q in %q: %v; want something of %q", c.expr, c.tz, err, c.says)
		}
	}
}

// FuzzParse: an expression that is read has a next time that lies behind, matches it,
// and has no other match in the minutes before, or has none at all.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"* * * * *", "*/5 0-3 1,15 JAN-MAR MON", "0 0 31 2 *", "7 7 7 7 7", "59 23 * * sun"} {
		f.Add(seed, int64(1767323045))
	}
	zone := "America/New_York"
	f.Fuzz(func(t *testing.T, expr string, unix int64) {
		s, err := Parse(expr, zone)
		if err != nil {
			return
		}
		at := time.Unix(unix%(1<<33), 0)
		next, ok := s.Next(at)
		if !ok {
			return
		}
		fits := func(x time.Time) bool {
			x = x.In(s.loc)
			return s.minute&(1<<x.Minute()) != 0 && s.hour&(1<<x.Hour()) != 0 && s.month&(1<<x.Month()) != 0 && s.day(x)
		}
		if !next.After(at) || !fits(next) || next.Second() != 0 {
			t.Fatalf("%q after %v: %v", expr, at, next)
		}
		for x, n := next.Add(-time.Minute), 0; x.After(at) && n < 3000; x, n = x.Add(-time.Minute), n+1 {
			if fits(x) {
				t.Fatalf("%q after %v: %v comes before %v", expr, at, x, next)
			}
		}
	})
}
