// Package tape turns what happened to a thread into the parts of a stream, for one reader: [Entry] is what happened,
// [Reader] makes the parts, and [Offset] is a place between two of them. Both runtimes stream by it.
package tape
