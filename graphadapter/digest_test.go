package graphadapter

import (
	"strings"
	"testing"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
)

func TestParamsHash(t *testing.T) {
	same := [][]string{
		{`{"a":1,"b":[true,null]}`, ` { "b" : [ true , null ] , "a" : 1.0 }`, `{"b":[true,null],"a":10e-1}`},
		{`"€"`, `"\u20ac"`},
		{`0`, `-0`, `0.000e5`},
		{`1e21`, `1000000000000000000000`},
		{`0.1`, `1e-1`, `0.10`},
	}
	seen := map[string]string{}
	for _, group := range same {
		var first string
		for i, v := range group {
			hash, err := ParamsHash(pregel.Value(v))
			if err != nil {
				t.Fatalf("%s: %v", v, err)
			}
			if i == 0 {
				first = hash
			}
			if hash != first {
				t.Errorf("%s and %s differ", v, group[0])
			}
		}
		if other, taken := seen[first]; taken {
			t.Errorf("%s and %s are the same", other, group[0])
		}
		seen[first] = group[0]
	}
	for _, v := range []string{
		`9007199254740992`, `9007199254740993`, `-9007199254740993`, `"9007199254740993"`, `9223372036854775807`,
		`9223372036854775806`, `1e400`, `1e500`, `{"n":9007199254740993}`, `{"n":{"number":"9007199254740993"}}`,
		`0.12345678901234567890`, `1e-400`, `[1]`, `[1,null]`, `{}`, `[]`, `""`, `null`, `false`,
	} {
		hash, err := ParamsHash(pregel.Value(v))
		if err != nil {
			t.Fatalf("%s: %v", v, err)
		}
		if other, taken := seen[hash]; taken {
			t.Errorf("%s and %s are the same", v, other)
		}
		seen[hash] = v
	}
	if _, err := ParamsHash(pregel.Value("{")); err == nil || !strings.Contains(err.Error(), "canonical") {
		t.Errorf("got %v", err)
	}
}

func FuzzParamsHash(f *testing.F) {
	f.Add(`{"a":[1,2.5,"x",null]}`)
	f.Add(`1e-999999999`)
	f.Fuzz(func(t *testing.T, text string) {
		first, err := ParamsHash(pregel.Value(text))
		if err != nil {
			return
		}
		stored, err := jsontext.Compact(pregel.Value(text))
		if err != nil {
			t.Fatalf("%q has a hash and is not JSON: %v", text, err)
		}
		if again, err := ParamsHash(stored); err != nil || again != first {
			t.Errorf("%q: the compact form has another hash (%v)", text, err)
		}
	})
}
