package delta

const (
	// Last is the highest number that a version has. The one after it is stored whole, and is number 0 again. A turn of a conversation
	// makes two versions, one at its run's beginning and one at its end.
	Last = 127
	// MostBytes bounds a delta. One that is larger shares as much when the version is stored whole, in pieces.
	MostBytes = 64 << 10
)

// Base is the number of the version that version n is told by. n is from 1 to Last.
func Base(n int) int { return n & (n - 1) }

// Next is the number of the version after n, if it is told by an earlier one; it reports false when it is to be stored whole.
func Next(n int) (int, bool) { return n + 1, n < Last }

// Worth is how large a delta may be for a value of that many bytes whose version before is read by deltas of before bytes together: all
// that is read for a version is at most half of what it is. None is worth it when the result is not positive.
func Worth(bytes, before int) int { return min(MostBytes, bytes/4, bytes/2-before) }
