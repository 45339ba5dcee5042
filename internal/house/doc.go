// Package house holds the tests that keep the house as it is drawn in docs/architecture.md. It has no code of its own.
//
//   - Arrows between packages point one way: a pure engine at the bottom, Temporal above it, the package that users import
//     above that, commands on top. docs/architecture.md names every package.
//   - Arrows between the files of a package follow the order in which its doc.go names them.
//   - No package has more files, no type more methods, and the root no more entries than a reader can keep in mind.
//   - What users can call is what testdata/api.txt says: whoever changes it sees the difference.
//
// What is above a limit today stands in testdata/excess.txt with its number, which may only fall:
//
//	go test ./internal/house -update     # writes lower numbers, and the API as it is now
//	go test ./internal/house -accept     # writes all numbers, for packages that are parted or renamed
package house
