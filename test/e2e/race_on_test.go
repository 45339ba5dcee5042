//go:build race

package e2e_test

// buildFlags are those of the binaries under test: they are watched for races when the tests are.
var buildFlags = []string{"-race"}
