package jsonfit

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// flat has nothing that can be shared.
type flat struct {
	Name string
	At   [2]bool
}

// document has what can be shared in every way.
type document struct {
	Title  string
	Labels map[string]any
	Next   *document
	Parts  []document
	Pair   [2][]int
	Empty  []int
	hidden int
}

// counting decodes itself: what it shares is its own affair.
type counting struct{ seen *string }

func (c *counting) UnmarshalJSON(data []byte) error {
	text := string(data)
	c.seen = &text
	return nil
}

// TestCopyPlans: which types are copied by assignment, which one by one, and which not at all.
func TestCopyPlans(t *testing.T) {
	type embeds struct {
		time.Time
		Name string
	}
	type recursive struct{ Children map[string]*recursive }
	for _, c := range []struct {
		of         any
		able, deep bool
	}{
		{"", true, false}, {json.Number("1"), true, false}, {1.5, true, false}, {flat{}, true, false}, {[3]flat{}, true, false}, {time.Time{}, true, false},
		{[]string{}, true, true}, {map[string]int{}, true, true}, {document{}, true, true}, {new(int), true, true}, {recursive{}, true, true},
		{json.RawMessage{}, true, true}, {[2][]int{}, true, true}, {map[int8]any{}, true, true},
		{counting{}, false, false}, {[]counting{}, false, true}, {embeds{}, false, false}, {struct{ hidden []int }{}, false, true},
		{make(chan int), false, false}, {map[counting]int{}, false, true}, {struct{ F func() }{}, false, false}, {map[time.Time]int{}, true, true},
	} {
		plan := copyPlanOf(reflect.TypeOf(c.of))
		require.Equal(t, c.able, plan.able, "%T", c.of)
		if c.able {
			require.Equal(t, c.deep, plan.deep != nil, "%T", c.of)
		}
	}
	whole := func() document {
		return document{Title: "t", Labels: map[string]any{"a": []any{json.Number("1"), nil, map[string]any{"b": true}}}, Next: &document{Title: "n"},
			Parts: []document{{Title: "p"}}, Pair: [2][]int{{1}, nil}, Empty: []int{}, hidden: 3}
	}
	shared, own := whole(), document{}
	copyPlanOf(reflect.TypeFor[document]()).deep(reflect.ValueOf(&own).Elem(), reflect.ValueOf(&shared).Elem())
	require.Equal(t, shared, own)
	own.Labels["a"].([]any)[0] = "spoilt"
	own.Labels["a"].([]any)[2].(map[string]any)["b"] = "spoilt"
	own.Labels["c"], own.Next.Title, own.Parts[0].Title, own.Pair[0][0] = "spoilt", "spoilt", "spoilt", 7
	require.Equal(t, whole(), shared, "who changed the copy changed what it was made of")
}
