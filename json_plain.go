package superstep

import (
	"strconv"

	"superstep.dev/graphadapter/pregel"
)

// decodePlain decodes what most state fields are, a number, a word or a yes or no, at a fraction of what encoding/json
// takes. It reports false for anything that is not written in the plainest way: encoding/json then decides.
func decodePlain(raw []byte, into any) bool {
	switch at := into.(type) {
	case *int:
		n, ok := pregel.SmallInteger(raw)
		if ok = ok && int64(int(n)) == n; ok {
			*at = int(n)
		}
		return ok
	case *int64:
		n, ok := pregel.SmallInteger(raw)
		if ok {
			*at = n
		}
		return ok
	case *string:
		ok := isPlainString(raw)
		if ok {
			*at = string(raw[1 : len(raw)-1])
		}
		return ok
	case *bool:
		yes := string(raw) == "true"
		if ok := yes || string(raw) == "false"; !ok {
			return false
		}
		*at = yes
		return true
	}
	return false
}

// encodePlain is the like of decodePlain; nil stands for anything else.
func encodePlain(v any) pregel.Value {
	switch v := v.(type) {
	case int:
		return strconv.AppendInt(nil, int64(v), 10)
	case int64:
		return strconv.AppendInt(nil, v, 10)
	case bool:
		return strconv.AppendBool(nil, v)
	case string:
		raw := make(pregel.Value, 0, len(v)+2)
		if raw = append(append(append(raw, '"'), v...), '"'); isPlainString(raw) {
			return raw
		}
	}
	return nil
}

// isPlainString reports whether raw is a JSON string of ASCII characters of which none is escaped.
func isPlainString(raw []byte) bool {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return false
	}
	for _, c := range raw[1 : len(raw)-1] {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
