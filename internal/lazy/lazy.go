// Package lazy holds values that are made when they are first asked for.
//
//	var name = lazy.Regexp{Expr: `^[a-z]+$`}
//	…
//	name.Get().MatchString(s)
//
// A package-level value written so is laid out by the compiler: the package then has
// nothing to do when the process starts. A function of sync.OnceValue has to be made
// at the start of every process, also where it is never called, and brings the pages
// of memory with it in which that is done. A test of cmd/transom holds that starting
// stays this way.
//
// # Ownership
//
// A value made is shared by all that ask, and must be safe for that.
//
// # Ordering
//
// Who asks while it is being made waits. Make is called once.
package lazy

import (
	"regexp"
	"sync"
)

// Value is made by Make when it is first asked for. It must not be copied after.
type Value[T any] struct {
	Make func() T

	once sync.Once
	made T
}

// Get returns the value. It may be called from any goroutine.
func (v *Value[T]) Get() T {
	v.once.Do(func() { v.made = v.Make() })
	return v.made
}

// Regexp is a regular expression that is compiled when it is first asked for. An Expr
// that is none panics then. It must not be copied after.
type Regexp struct {
	Expr string

	once sync.Once
	made *regexp.Regexp
}

// Get returns the expression. It may be called from any goroutine.
func (r *Regexp) Get() *regexp.Regexp {
	r.once.Do(func() { r.made = regexp.MustCompile(r.Expr) })
	return r.made
}
