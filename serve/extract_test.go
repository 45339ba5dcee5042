package serve

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// A path leads to members and elements, from the end too, and to null where there is nothing; what can lead nowhere is refused.
func TestExtract(t *testing.T) {
	one := threadOut{Metadata: object{"graph_id": raw("steps")}, Values: object{"log": raw([]string{"a", "b"})}}
	for path, want := range map[string]string{
		"values.log": `["a","b"]`, "values.log[0]": `"a"`, "values.log[-1]": `"b"`, "metadata.graph_id": `"steps"`,
		"values.log[2]": `null`, "values.log[-3]": `null`, "values.nope": `null`, "values.log.a": `null`, "metadata.graph_id[0]": `null`, "values.nope[0].x": `null`,
	} {
		q := threadSearch{Extract: map[string]string{"x": path}}
		require.NoError(t, q.checkExtract(), path)
		require.Equal(t, object{"x": json.RawMessage(want)}, q.extracted(one), path)
	}
	for _, path := range []string{"", "status", "nope", "values..log", "values.log[x]", "values.log[", "values]", "valuesx"} {
		q := threadSearch{Extract: map[string]string{"x": path}}
		require.Equal(t, 422, faultOf(q.checkExtract()).status, path)
	}
	require.Nil(t, (&threadSearch{}).extracted(one))
}
