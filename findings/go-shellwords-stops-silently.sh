#!/usr/bin/env bash
# go-shellwords 1.0.12: a line with a character that only a shell can act upon.
#
# Guess: "fetch; unpack" is an error, or five words of which one is ";".
# Seen: the words before the character are returned without an error, and the rest of the line is gone. The parser's
# Position tells where it stopped; the package function Parse has no such thing. A comment is no comment.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
go mod init finding >/dev/null 2>&1
go get github.com/mattn/go-shellwords@v1.0.12 >/dev/null 2>&1
cat >main.go <<'GO'
package main

import (
	"fmt"
	"slices"

	"github.com/mattn/go-shellwords"
)

func main() {
	for _, line := range []string{"fetch; unpack", "fetch | unpack", "fetch && unpack", "fetch > file", "fetch & unpack"} {
		words, err := shellwords.Parse(line)
		fmt.Printf("%-16s %q %v\n", line, words, err)
		if err != nil || !slices.Equal(words, []string{"fetch"}) {
			panic("another result")
		}
		parser := shellwords.NewParser()
		if _, err := parser.Parse(line); err != nil || parser.Position < 0 {
			panic("no position")
		}
	}
	words, err := shellwords.Parse("fetch # twice")
	fmt.Printf("%-16s %q %v\n", "fetch # twice", words, err)
	if err != nil || !slices.Equal(words, []string{"fetch", "#", "twice"}) {
		panic("another result")
	}
}
GO
go mod tidy >/dev/null 2>&1
go run .
