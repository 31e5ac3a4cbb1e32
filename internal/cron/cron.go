// Package cron reads the five fields of a cron expression and says when its time
// comes next.
//
//	┌ minute 0–59
//	│ ┌ hour 0–23
//	│ │  ┌ day of the month 1–31
//	│ │  │ ┌ month 1–12 or JAN–DEC
//	│ │  │ │ ┌ day of the week 0–7 or SUN–SAT; 0 and 7 are Sunday
//	0 9  * * MON-FRI
//
// A field is "*", a value, a range "a-b", either with a step "/n", or a list of these.
// Where both days are restricted, one of them is enough, as in crontab(5).
//
// # Ownership
//
// A [Spec] is immutable. It knows no clock: times come from its caller.
//
// # Errors
//
// An expression that cannot be read, or whose time never comes, is an error that says
// which field is wrong.
package cron

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Spec is an expression that was read.
type Spec struct {
	minute, hour, dom, month, dow uint64 // bit sets
	anyDOM, anyDOW                bool   // not restricted
	loc                           *time.Location
}

type field struct {
	name     string
	min, max int
	names    []string // of the values from min on
}

var fields = [5]field{
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day of the month", 1, 31, nil},
	{"month", 1, 12, []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}},
	{"day of the week", 0, 7, []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}},
}

// Parse reads an expression. tz is a name of the IANA time zone database; "" is UTC.
func Parse(expr, tz string) (*Spec, error) {
	loc, err := time.LoadLocation(tz)
	if err != nil || tz == "Local" {
		return nil, fmt.Errorf("the time zone %q is not known here: give one of the IANA database, such as Europe/Berlin", tz)
	}
	parts := strings.Fields(expr)
	if len(parts) != len(fields) {
		return nil, fmt.Errorf("the cron expression %q has %d fields, not 5: minute, hour, day of the month, month, day of the week", expr, len(parts))
	}
	var sets [5]uint64
	for i, f := range fields {
		if sets[i], err = f.parse(parts[i]); err != nil {
			return nil, err
		}
	}
	if sets[4]&(1<<7) != 0 {
		sets[4] |= 1
	}
	return &Spec{sets[0], sets[1], sets[2], sets[3], sets[4], strings.HasPrefix(parts[2], "*"), strings.HasPrefix(parts[4], "*"), loc}, nil
}

func (f *field) parse(text string) (set uint64, err error) {
	for _, item := range strings.Split(text, ",") {
		span, by, stepped := strings.Cut(item, "/")
		step := 1
		if stepped {
			if step, err = strconv.Atoi(by); err != nil || step < 1 || step > f.max {
				return 0, fmt.Errorf("the %s of the cron expression, %q, has a step that is not a number from 1 to %d", f.name, text, f.max)
			}
		}
		lo, hi := f.min, f.max
		if span != "*" {
			a, b, isRange := strings.Cut(span, "-")
			var okA, okB bool
			lo, okA = f.value(a)
			hi, okB = lo, true
			if isRange {
				hi, okB = f.value(b)
			} else if stepped {
				hi = f.max
			}
			if !okA || !okB || lo > hi {
				return 0, fmt.Errorf("the %s of the cron expression, %q, is not made of values from %d to %d", f.name, text, f.min, f.max)
			}
		}
		for v := lo; v <= hi; v += step {
			set |= 1 << v
		}
	}
	return set, nil
}

func (f *field) value(text string) (int, bool) {
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.min + i, true
		}
	}
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	v, err := strconv.Atoi(text)
	return v, err == nil && v >= f.min && v <= f.max
}

// horizon is how far ahead a time may lie: 29 February comes every eight years at
// the latest.
const horizon = 8*366 + 1

// Next is the first time behind another one, on a full minute; ok is false where
// there is none. A time of day that the zone's clock skips is skipped, and one that
// it shows twice comes twice.
func (s *Spec) Next(after time.Time) (next time.Time, ok bool) {
	t := after.In(s.loc).Truncate(time.Minute).Add(time.Minute)
	end := after.AddDate(0, 0, horizon)
	for t.Before(end) {
		y, m, d := t.Date()
		switch {
		case s.month&(1<<m) == 0:
			t = later(t, time.Date(y, m+1, 1, 0, 0, 0, 0, s.loc))
		case !s.day(t):
			t = later(t, time.Date(y, m, d+1, 0, 0, 0, 0, s.loc))
		case s.hour&(1<<t.Hour()) == 0:
			t = t.Add(time.Duration(60-t.Minute()) * time.Minute)
		case s.minute&(1<<t.Minute()) == 0:
			t = t.Add(time.Minute)
		default:
			return t, true
		}
	}
	return time.Time{}, false
}

// later is the second time; where a clock that was put forward makes it none that is
// later than the first, it is an hour behind that.
func later(t, then time.Time) time.Time {
	if then.After(t) {
		return then
	}
	return t.Add(time.Hour)
}

func (s *Spec) day(t time.Time) bool {
	dom, dow := s.dom&(1<<t.Day()) != 0, s.dow&(1<<t.Weekday()) != 0
	if s.anyDOM || s.anyDOW {
		return dom && dow
	}
	return dom || dow
}
