package trace

import "testing"

func TestFirstDifference(t *testing.T) {
	for _, c := range []struct{ want, got, diff string }{
		{`{"a": [1, {"b": null}]}`, `{"a": [1, {"b": null}]}`, ``},
		{`{"a": 1, "b": 2}`, `{"b": 3, "a": 1}`, `$.b: want 2, got 3`},
		{`{"a": 1}`, `{"a": 1, "b": null}`, `$.b: want nothing, got null`},
		{`{"a": 1, "b": []}`, `{"a": 1}`, `$.b: want [], got nothing`},
		{`[1, 2, 3]`, `[1, 4]`, `$[1]: want 2, got 4`},
		{`[1, 2, 3]`, `[1, 2]`, `$[2]: want 3, got nothing`},
		{`[1]`, `[1, 2]`, `$[1]: want nothing, got 2`},
		{`{"a": {"k": [1]}}`, `{"a": {"k": "x"}}`, `$.a.k: want [1], got "x"`},
		{`null`, `{}`, `$: want null, got {}`},
		{`1`, `1.0`, `$: want 1, got 1.0`},
		{`false`, `0`, `$: want false, got 0`},
	} {
		got := ""
		if d := Compare("$", decoded(t, c.want), decoded(t, c.got)); d != nil {
			got = d.String()
		}
		if got != c.diff {
			t.Errorf("%s against %s: %q, want %q", c.want, c.got, got, c.diff)
		}
	}
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	v, err := Decode([]byte(text))
	if err != nil {
		t.Fatalf("decoding %s: %v", text, err)
	}
	return v
}
