// Package nearest completes messages about unknown names with the known name that looks most like them.
package nearest
