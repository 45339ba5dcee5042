#!/usr/bin/env bash
# jsonschema-go 0.4.3: forms that are made of a JSON schema.
#
# Guess: 1.13 is a multiple of 0.01; a schema with a type that does not exist, with a list of schemas as "items", or with
# a negative minimum length is refused when it is resolved.
# Seen: multiples are compared as the exact fractions of the doubles, so 0.3 is no multiple of 0.1 and 1.13 none of 0.01.
# The three schemas are taken: with the misspelled type every value is
# refused, with the list of schemas none is looked at, and a pattern with a look-ahead fails as it is resolved.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
go mod init finding >/dev/null 2>&1
go get github.com/google/jsonschema-go@v0.4.3 >/dev/null 2>&1
cat >main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

func main() {
	for _, c := range []struct{ schema, value, want string }{
		{`{"multipleOf":0.1}`, `0.3`, "refused"},
		{`{"multipleOf":0.01}`, `1.13`, "refused"},
		{`{"multipleOf":0.5}`, `1.5`, "taken"},
		{`{"type":"strin"}`, `"a"`, "refused"},
		{`{"type":"array","items":[{"type":"string"}]}`, `[1]`, "taken"},
		{`{"minLength":-1}`, `"a"`, "taken"},
		{`{"type":"string","format":"date"}`, `"never"`, "taken"},
		{`{"dependencies":{"a":["b"]}}`, `{"a":1}`, "taken"},
		{`{"pattern":"^(?=a)"}`, `"a"`, "not resolved"},
	} {
		got := answer(c.schema, c.value)
		fmt.Printf("%-46s %-8s %s\n", c.schema, c.value, got)
		if !strings.HasPrefix(got, c.want) {
			panic("wanted " + c.want)
		}
	}
}

func answer(schema, value string) string {
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(schema), &s); err != nil {
		return "not read: " + err.Error()
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return "not resolved: " + err.Error()
	}
	var v any
	if err := json.Unmarshal([]byte(value), &v); err != nil {
		panic(err)
	}
	if err := resolved.Validate(v); err != nil {
		return "refused: " + err.Error()
	}
	return "taken"
}
GO
go mod tidy >/dev/null 2>&1
go run .
