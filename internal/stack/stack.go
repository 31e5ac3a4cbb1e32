// Package stack makes a goroutine's stack as large as it will be needed, at once.
//
//	without   2 KB ─▶ 4 ─▶ 8 ─▶ 16 KB     in the middle of the work, again and again
//	with      2 KB ───────────▶ 16 KB     at its beginning, one or two calls deep
//
// Where a stack grows, the Go runtime looks up the tables of every function on it.
// They lie all over the program's file, and the first look at each place brings 64 KB
// of the file into the process's memory. Early, when next to nothing is on the stack,
// the same growth needs a handful of them. The new part of the stack is not touched
// before it is used. It is for goroutines that are known to go deep, and few: what it
// saves at the start of the server is in docs/performance.md.
package stack

// room is what decoding a message and answering it was seen to need, with the stack
// that is there.
const room = 12 << 10

// Grow makes the stack of the goroutine that calls it 16 KB, where it is smaller.
func Grow() { reach(false, 0) }

// reach needs a stack with room for its frame, which it touches only if told to.
//
//go:noinline
func reach(touch bool, at int) byte {
	if !touch {
		return 0
	}
	var frame [room]byte
	for i := range frame {
		frame[i] = byte(i ^ at)
	}
	return frame[at]
}
