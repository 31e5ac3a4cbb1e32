// Package atstart makes the stack of the goroutine that starts the process as large
// as the start needs it, in a program that imports it:
//
//	import _ "github.com/transom-run/transom/internal/stack/atstart"
//
// See package stack. It imports nothing else, so that it is set up before almost all
// other packages; were it not, it would do no harm.
package atstart

import "github.com/transom-run/transom/internal/stack"

func init() { stack.Grow() }
