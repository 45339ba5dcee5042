// Package delta tells one version of a value by an earlier one: what is new in it, and which stretches of the earlier one it repeats.
// It says as well when that is worth it, and which earlier version it is told by. All of it are functions of their arguments.
//
// Versions of a value are numbered; number 0 is stored whole. Version n is told by the version whose number is n without its lowest
// binary one ([Base]): version 7 by 6, 6 by 4, 4 by 0. So any version is read by at most seven deltas instead of n, each byte that
// was appended is stored some times (once for each of its levels) instead of once, and whoever has a version and those that it is told
// by has all that the next one can be told by.
package delta
