package jsonfit

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type tree struct {
	Name string `json:"name"`
	Sub  []tree `json:"sub"`
}

type opaque struct{ a int }

func (o *opaque) UnmarshalJSON([]byte) error { o.a++; return nil }

// Every type has a shape, if only that of its kind.
func TestShape(t *testing.T) {
	for _, c := range []struct {
		of   reflect.Type
		want string
	}{
		{reflect.TypeFor[int64](), `{"type": "integer"}`},
		{reflect.TypeFor[[]string](), `{"type": "array", "items": {"type": "string"}}`},
		{reflect.TypeFor[map[string]bool](), `{"type": "object", "additionalProperties": {"type": "boolean"}}`},
		{reflect.TypeFor[tree](), `{"type": "object"}`},
		{reflect.TypeFor[[]tree](), `{"type": "array"}`},
		{reflect.TypeFor[chan int](), `{}`},
		{reflect.TypeFor[time.Time](), `{"type": "string"}`},
		{reflect.TypeFor[*string](), `{"type": ["null", "string"]}`},
		{reflect.TypeFor[opaque](), `{"type": ["null", "boolean", "number", "string", "array", "object"]}`},
	} {
		require.JSONEq(t, c.want, string(Shape(c.of)), c.of.String())
	}
}
