package jsonfit

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlainIsAsJSON: a fast way that decides is one with encoding/json.
func TestPlainIsAsJSON(t *testing.T) {
	for _, raw := range []string{`0`, `-0`, `7`, `-7`, `00`, `01`, `-`, `+1`, ``, ` 7`, `7 `, `7.0`, `7e1`, `999999999999999999`, `-999999999999999999`,
		`9223372036854775807`, `9223372036854775808`, `true`, `false`, `True`, `tru`, `null`, `""`, `"`, `"a"`, `"a`, `"a\"b"`, `"a"b"`, `"\u0041"`,
		`"<>&"`, `"ä"`, "\"\x80\"", "\"\x7f\"", "\"\n\"", `[]`, `{}`} {
		for _, zero := range []any{int(3), int64(3), "x", true, 2.5, int8(1), []int{1}} {
			plain, slow := reflect.New(reflect.TypeOf(zero)), reflect.New(reflect.TypeOf(zero))
			plain.Elem().Set(reflect.ValueOf(zero))
			if !decodePlain([]byte(raw), plain.Interface()) {
				require.Equal(t, zero, plain.Elem().Interface(), "%q was decoded half", raw)
				continue
			}
			require.NoError(t, json.Unmarshal([]byte(raw), slow.Interface()), "%q into %T", raw, zero)
			require.Equal(t, slow.Elem().Interface(), plain.Elem().Interface(), "%q into %T", raw, zero)
		}
	}
	type named string
	for _, v := range []any{0, -7, math.MaxInt, math.MinInt, int64(math.MinInt64), true, false, "", "a b", "<>&", "a\"b", `a\b`, "ä", "\x80", "\n", "\x7f",
		named("x"), 2.5, nil, uint(3), json.RawMessage(`1`)} {
		raw := encodePlain(v)
		if raw == nil {
			continue
		}
		want, err := json.Marshal(v)
		require.NoError(t, err)
		if v != "<>&" { // Encode does not escape them
			require.Equal(t, string(want), string(raw))
		}
		slow, err := Encode(v)
		require.NoError(t, err)
		require.Equal(t, string(slow), string(raw))
	}
	require.Equal(t, `"<>&"`, string(encodePlain("<>&")))
}
