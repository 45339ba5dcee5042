#!/usr/bin/env bash
# cel-go 0.32.0: an expression over decoded JSON.
#
# Guess: a number of JSON that equals 5 can be added to 1 and divided with a remainder by 2, or the compiler refuses it.
# Seen: decoded JSON has doubles only. Comparisons work across kinds of numbers, so a test with == and < passes; + and %
# with a whole number compile and fail when they are evaluated. A field that is missing is an error, but not on either
# side of an || whose other side is true.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
go mod init finding >/dev/null 2>&1
go get cel.dev/cel-go@v0.32.0 >/dev/null 2>&1
cat >main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"

	"cel.dev/cel-go/cel"
)

func main() {
	env, err := cel.NewEnv(cel.Variable("p", cel.DynType))
	check(err)
	var p any
	check(json.Unmarshal([]byte(`{"amount":5}`), &p))
	for _, c := range []struct{ text, want string }{
		{`p.amount == 5`, "true"},
		{`p.amount < 6`, "true"},
		{`p.amount in [5]`, "true"},
		{`p.amount + 1.0 == 6.0`, "true"},
		{`p.amount + 1 == 6`, "no such overload"},
		{`p.amount % 2 == 1`, "no such overload: _%_"},
		{`p.other == 1`, "no such key: other"},
		{`p.other == 1 || true`, "true"},
		{`p.other == 1 || false`, "no such key: other"},
	} {
		ast, issues := env.Compile(c.text)
		check(issues.Err())
		program, err := env.Program(ast)
		check(err)
		var got string
		if value, _, err := program.Eval(map[string]any{"p": p}); err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprint(value.Value())
		}
		fmt.Printf("%-24s %s\n", c.text, got)
		if got != c.want {
			panic("wanted " + c.want)
		}
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
GO
go mod tidy >/dev/null 2>&1
go run .
