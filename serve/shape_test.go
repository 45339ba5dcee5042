package serve

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Null is nothing that a field says, unless the protocol has it; what is always there is, and words and ids are some. What a body has
// besides is nobody's business.
func TestWhatFieldsSay(t *testing.T) {
	for _, c := range []struct {
		of    reflect.Type
		text  string
		wrong string // what the refusal begins with, "" for none
	}{
		{of[runRequest](), `{"assistant_id": "a", "input": null, "command": null, "checkpoint_id": null, "on_disconnect": null, "nope": null, "Context": null}`, ""},
		{of[runRequest](), `{"context": null}`, "context is null"},
		{of[runRequest](), `{"metadata": null}`, "metadata is null"},
		{of[runRequest](), `{"metadata": {"a": null}, "input": {"a": null}, "context": {"a": null}}`, ""},
		{of[runRequest](), `{"stream_mode": null}`, "stream_mode is null"},
		{of[runRequest](), `{"stream_mode": []}`, ""},
		{of[runRequest](), `{"stream_mode": ["values", null]}`, "stream_mode has null"},
		{of[runRequest](), `{"interrupt_before": [null]}`, "interrupt_before has null"},
		{of[runRequest](), `{"multitask_strategy": ""}`, "multitask_strategy is empty"},
		{of[runRequest](), `{"config": {"tags": null}}`, "config.tags is null"},
		{of[runRequest](), `{"config": {"metadata": null, "other": null}}`, ""},
		{of[runRequest](), `{"checkpoint": {"checkpoint_map": null}}`, "checkpoint.checkpoint_map is null"},
		{of[runRequest](), `{"command": {"resume": null, "update": null, "goto": null}}`, ""},
		{of[threadBody](), `{"supersteps": [{"updates": [{"as_node": "a", "values": null}]}]}`, ""},
		{of[threadBody](), `{"supersteps": [{"updates": [{"values": {}}]}]}`, "supersteps.updates.as_node is missing"},
		{of[threadBody](), `{"supersteps": [null]}`, "supersteps has null"},
		{of[threadBody](), `{"ttl": {"ttl": null}}`, "ttl.ttl is null"},
		{of[threadSearch](), `{"limit": null}`, "limit is null"},
		{of[threadSearch](), `{"sort_by": ""}`, "sort_by is empty"},
		{of[stateAtBody](), `{}`, "checkpoint is missing"},
		{of[cronSearch](), `{"assistant_id": "steps"}`, `assistant_id "steps" is no UUID`},
		{of[itemSearch](), `{"namespace_prefix": null, "filter": null, "query": null, "refresh_ttl": null}`, ""},
		{of[itemBody](), `{"namespace": ["a"]}`, "key is missing"},
	} {
		into := reflect.New(c.of)
		require.NoError(t, json.Unmarshal([]byte(c.text), into.Interface()), c.text)
		err := decode(json.RawMessage(c.text), into.Interface())
		if c.wrong == "" {
			require.NoError(t, err, c.text)
			continue
		}
		require.Error(t, err, c.text)
		require.Equal(t, http.StatusUnprocessableEntity, faultOf(err).status)
		require.True(t, strings.HasPrefix(err.Error(), c.wrong), "%s: %v", c.text, err)
	}
}

// counted counts what is read of a body that never ends.
type counted struct{ read int }

func (c *counted) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	c.read += len(p)
	return len(p), nil
}

// A body that is too large is refused before it comes when it says how large it is, and else where it gets too large.
func TestLargeBodies(t *testing.T) {
	s := bare(Config{}).with("POST /do", contract{open: true, body: of[object]()}, func(w http.ResponseWriter, r *http.Request) error {
		var body object
		return read(w, r, &body)
	})
	for announced, most := range map[int64]int{100 << 20: 0, -1: maxBody + 1<<20} {
		var body counted
		r := httptest.NewRequest("POST", "/do", &body)
		r.Host, r.ContentLength = "localhost", announced
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
		require.LessOrEqual(t, body.read, most)
	}
}

// What is so deep that it could not be read within what is stored is refused, and brackets within texts are none.
func TestDeepBodies(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`{"a":[`, n/2) + strings.Repeat("]}", n/2) }
	require.Equal(t, maxDepth, depth([]byte(nested(maxDepth))))
	require.Equal(t, 1, depth([]byte(`{"a": "[[[{\"[", "b\\": "]"}`)))
	for text, status := range map[string]int{nested(maxDepth): http.StatusOK, nested(maxDepth + 2): http.StatusUnprocessableEntity,
		strings.Repeat("[", 1<<20): http.StatusUnprocessableEntity} {
		w := httptest.NewRecorder()
		_, err := readText(w, httptest.NewRequest("POST", "/", strings.NewReader(text)))
		if status == http.StatusOK {
			require.NoError(t, err)
			continue
		}
		require.Equal(t, status, faultOf(err).status)
	}
}

// How many runs a batch has is known before there are any, and one that does not fit refuses all.
func TestBatches(t *testing.T) {
	for text, wrong := range map[string]string{
		`[]`: "0 runs", `{}`: "the body is no list", `[{}]`: "run 0 of the list: assistant_id is missing", `[null]`: "run 0 of the list: assistant_id is missing",
		"[" + strings.Repeat("{},", 1_000_000) + "{}]":                     "1000001 runs",
		`[{"assistant_id": "a"}, {"assistant_id": "a", "metadata": null}]`: "run 1 of the list: metadata is null",
	} {
		_, err := readBatch(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(text)))
		require.Error(t, err)
		require.True(t, strings.HasPrefix(err.Error(), wrong), "%v", err)
		require.Equal(t, http.StatusUnprocessableEntity, faultOf(err).status)
	}
}

// A checkpoint has another id in each thread, and is found by it in its own alone; by the thread's own id it is found too.
func TestIDsOfCheckpoints(t *testing.T) {
	const one, other, own = "01a21409-d25a-712a-af19-28bb27f56bf0", "01a21409-d613-772f-8773-4ed9e47513b6", "c-a815626063"
	shown := checkpointOut(one, own)
	require.Regexp(t, `^a8156260-63[0-9a-f]{2}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, shown)
	require.NotEqual(t, shown, checkpointOut(other, own))
	require.Equal(t, own, checkpointIn(one, shown))
	require.Equal(t, own, checkpointIn(one, own))
	require.Equal(t, shown, checkpointIn(other, shown))
	for _, none := range []string{"", "x", "c-12", other} {
		require.Equal(t, none, checkpointIn(one, none))
		require.Equal(t, none, checkpointOut(one, none))
	}
}
