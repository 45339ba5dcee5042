// Package stackroom gives a new goroutine the stack that it needs in one step.
//
// A goroutine begins with a small stack, which is copied to one of twice the size whenever it is full, again and again, and the deeper it
// is the longer that takes: in a short run more than what the run does.
package stackroom

// Grow makes room for what most of Superstep's goroutines need, 8 KiB, unless there is as much. It is called where the stack is shallow.
func Grow() { take(0) }

//go:noinline
func take(at int) byte {
	var room [8 << 10]byte
	room[at]++ // without a use there is no room
	return room[len(room)-1-at]
}
