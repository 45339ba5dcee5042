package serve

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAChunkHasTheCallsThatAreWholeByThemselves(t *testing.T) {
	for pieces, want := range map[string]string{
		`{"id":"call_1","function":{"name":"f","arguments":""}}`: `[{"name":"f","args":{},"id":"call_1","type":"tool_call"}]`,
		`{"function":{"arguments":"{\"city\": \"Oslo\"}"}}`:      `[{"name":"","args":{"city":"Oslo"},"id":null,"type":"tool_call"}]`,
		`{"function":{"arguments":"{\"ci"}}`:                     `[]`,
	} {
		var p piece
		require.NoError(t, json.Unmarshal([]byte(`{"id":"m","role":"assistant","content":"","tool_calls":[`+pieces+`]}`), &p))
		require.JSONEq(t, want, string(raw(p.chunk(0).Calls)))
	}
}

func TestAContextIsCutToWhatASchemaHas(t *testing.T) {
	const given = `{"user":"eve","page":3}`
	for schema, want := range map[string]string{
		`{"properties":{"user":{}},"additionalProperties":false}`: `{"user":"eve"}`,
		`{"properties":{"user":{}},"additionalProperties":true}`:  given,
		`{"additionalProperties":false}`:                          given,
		``:                                                        given,
	} {
		require.JSONEq(t, want, string(fitting(json.RawMessage(given), json.RawMessage(schema))), schema)
	}
}
