// Package data is the data set of the research example: the Palmer penguins, in the public domain. README.md beside it
// says where it comes from.
package data

import _ "embed"

// Penguins is the data set as CSV, with a header line.
//
//go:embed penguins-raw.csv
var Penguins []byte
