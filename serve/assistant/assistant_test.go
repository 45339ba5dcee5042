package assistant

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func parse(t *testing.T, text string) (o Object) {
	require.NoError(t, json.Unmarshal([]byte(text), &o))
	return o
}

// Context and config.configurable are the same after every change.
func TestContextAndConfigurableAreOne(t *testing.T) {
	a := Assistant{}
	for _, step := range []struct{ config, context, wantConfig, wantContext string }{
		{`{"recursion_limit": 3}`, ``, `{"recursion_limit": 3}`, `{}`},
		{``, `{"x": 1}`, `{"recursion_limit": 3, "configurable": {"x": 1}}`, `{"x": 1}`},
		{`{"configurable": {"y": 2}}`, ``, `{"configurable": {"y": 2}}`, `{"y": 2}`},
		{`{"tags": []}`, ``, `{"tags": [], "configurable": {"y": 2}}`, `{"y": 2}`},
		{``, `{}`, `{"tags": []}`, `{}`},
	} {
		var c Change
		if step.config != "" {
			c.Config = parse(t, step.config)
		}
		if step.context != "" {
			c.Context = parse(t, step.context)
		}
		a = a.With(c)
		config, err := json.Marshal(a.Config)
		require.NoError(t, err)
		require.JSONEq(t, step.wantConfig, string(config))
		context, err := json.Marshal(a.Context)
		require.NoError(t, err)
		require.JSONEq(t, step.wantContext, string(context))
	}
}

// What a change is made of stays as it was: versions share nothing.
func TestVersionsShareNothing(t *testing.T) {
	first := Assistant{}.With(Change{Metadata: parse(t, `{"a": 1}`), Context: parse(t, `{"x": 1}`)})
	second := first.With(Change{Metadata: parse(t, `{"b": 2}`), Config: parse(t, `{}`)})
	second.Metadata["c"], second.Context["z"] = nil, nil
	require.Equal(t, parse(t, `{"a": 1}`), first.Metadata)
	require.Equal(t, parse(t, `{"x": 1}`), first.Context)
}

// A record keeps so many versions, and so many bytes, and its numbers go on.
func TestOldVersionsAreForgotten(t *testing.T) {
	r := Record{ID: "a"}
	now := time.Unix(1000, 0)
	for range mostVersions + 5 {
		r.add(Assistant{}, now)
	}
	require.Len(t, r.Versions, mostVersions)
	require.Equal(t, mostVersions+5, r.Latest().Version)
	require.Nil(t, r.version(5))
	long := Assistant{Metadata: Object{"long": json.RawMessage(`"` + strings.Repeat("x", longest-1000) + `"`)}}
	require.False(t, tooLarge(long))
	for range 50 {
		r.add(long, now)
	}
	raw, err := json.Marshal(r)
	require.NoError(t, err)
	require.Less(t, len(raw), longestAll+longest)
	require.Equal(t, mostVersions+55, r.Latest().Version)
}
