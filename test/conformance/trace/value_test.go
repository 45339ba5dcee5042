package trace

import (
	"reflect"
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"b": 1, "a": [true, null, "x"]}`, `{"a":[true,null,"x"],"b":1}`},
		{` [ ] `, `[]`},
		{`{}`, `{}`},
		{`[[],{}]`, `[[],{}]`},
		{`9223372036854775807`, `9223372036854775807`},
		{`18446744073709551616`, `18446744073709551616`},
		{`1.50`, `1.50`},
		{`"a<b>&\"\\\n"`, `"a<b>&\"\\\n"`},
	} {
		v, err := Decode([]byte(c.in))
		if err != nil {
			t.Fatalf("decodeValue(%s): %v", c.in, err)
		}
		if got := Canonical(v); got != c.want {
			t.Errorf("canonical(%s) = %s, want %s", c.in, got, c.want)
		}
	}
}

func TestDecodeValueRefuses(t *testing.T) {
	for _, text := range []string{"", "  ", "{", "1 2", "nul"} {
		if v, err := Decode([]byte(text)); err == nil {
			t.Errorf("decodeValue(%q) = %v, want an error", text, v)
		}
	}
}

func TestIntegersAreExact(t *testing.T) {
	v, err := Decode([]byte(`9007199254740993`))
	if err != nil || v != int64(9007199254740993) {
		t.Errorf("got %v (%T), %v: a float would have lost the last digit", v, v, err)
	}
}

func TestDecodeMembersKeepsOrder(t *testing.T) {
	members, err := Members([]byte(`{"z": 1, "a": {"k": [2]}, "m": null}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range members {
		got = append(got, m.Name+"="+string(m.Value))
	}
	if want := []string{"z=1", `a={"k": [2]}`, "m=null"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDecodeMembersRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": 1, "a": 2}`: "twice",
		`[1]`:              "want an object",
		`{"a": `:           "EOF",
	} {
		if _, err := Members([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("decodeMembers(%s): %v, want an error with %q", text, err, want)
		}
	}
}
