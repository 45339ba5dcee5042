package planner

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"superstep.dev/job"
)

func passes(d job.Draft) error {
	return job.CheckPlan(d, []job.Profile{{Name: "loader"}, {Name: "analyst"}, {Name: "writer"}, {Name: "x"}}, job.MaxSubJobs)
}

func TestExtract(t *testing.T) {
	datadriven.RunTest(t, "testdata/extract", func(t *testing.T, d *datadriven.TestData) string {
		text := d.Input
		if d.Cmd == "unquote" {
			var err error
			text, err = strconv.Unquote(text)
			require.NoError(t, err)
		}
		draft, err := extract(text, passes)
		if err != nil {
			require.ErrorAs(t, err, new(*job.BadPlanError))
			require.Empty(t, draft)
			return err.Error()
		}
		var out strings.Builder
		for _, s := range draft.SubJobs {
			line, err := json.Marshal(s)
			require.NoError(t, err)
			fmt.Fprintf(&out, "%s\n", line)
		}
		return out.String()
	})
}

// TestExtractIsQuickWhateverComes gives it answers of a quarter of the greatest length that are made to be slow: going over each
// more often than a bounded number of times would take hours.
func TestExtractIsQuickWhateverComes(t *testing.T) {
	for _, unit := range []string{
		"{", "[", `{"a":`, `[{"goal":`, `"`, `{"`, "{/*", "{//", "/", `{"a":1}`, "{}", `{"subjobs":[]}`, "[[[]]]", "{]", `\`, `{"\`,
		strings.Repeat("[", maxDepth-1) + `{"goal"}` + strings.Repeat("]", maxDepth-1), strings.Repeat("[", maxDepth) + `"goal"`,
	} {
		start := time.Now()
		_, err := extract(strings.Repeat(unit, maxAnswer/4/len(unit)), passes)
		require.Error(t, err, unit)
		require.Less(t, time.Since(start), 2*time.Minute, unit)
	}
}

// TestExtractLongest reads a plan of as many subjobs as a job may have, as long as an answer may be.
func TestExtractLongest(t *testing.T) {
	var in job.Draft
	for i := range job.MaxSubJobs {
		in.SubJobs = append(in.SubJobs, job.DraftSubJob{ID: strconv.Itoa(i), Goal: strings.Repeat("{", 32), Expert: "x"})
	}
	text, err := json.Marshal(in)
	require.NoError(t, err)
	out, err := extract("so {be it}: "+string(text), passes)
	require.NoError(t, err)
	require.Equal(t, in, out)
}

// TestWhatIsQuotedIsBounded because a lesson is kept, and told to the model.
func TestWhatIsQuotedIsBounded(t *testing.T) {
	long := strings.Repeat("x", maxAnswer/4)
	for _, text := range []string{
		`{"subjobs": {"` + long + `": 1}}`,
		`{"subjobs": [{"goal": "a", "` + long + `": 1, "` + long + `": 1}]}`,
		`{"subjobs": {"1": {"goal": "a", "id": "` + long + `"}}}`,
		`{"subjobs": [{"id": "` + long + `", "goal": "a", "assigned_expert": "` + long + `"}]}`,
		`{"subjobs": [{"id": "1", "goal": "a", "assigned_expert": "x", "dependencies": ["` + long + `"]}]}`,
	} {
		_, err := extract(text, passes)
		require.Error(t, err)
		require.Less(t, len(err.Error()), job.MaxNote)
	}
}

func FuzzExtract(f *testing.F) {
	f.Add(`{"subjobs": [{"id": "1", "goal": "load", "assigned_expert": "x", "dependencies": [1, "2"]}, /* c */ ]} {"1": {"goal": ["a"]}}`)
	f.Add("```json\n[{\"goal\": {\"a\": \"\\u0000\n\"}, \"assigned_expert\": 1,}]\n``` {")
	f.Fuzz(func(t *testing.T, text string) {
		draft, err := extract(text, passes)
		if err != nil {
			if !errors.As(err, new(*job.BadPlanError)) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		ids := map[string]bool{}
		for _, s := range draft.SubJobs {
			if s.ID == "" || s.Goal == "" || s.Expert == "" || ids[s.ID] {
				t.Fatalf("%+v", draft)
			}
			ids[s.ID] = true
		}
		// What was found is found again when it is written as it should have been.
		again, err := json.Marshal(draft)
		if err != nil {
			t.Fatal(err)
		}
		same, err := extract(string(again), passes)
		if err != nil {
			t.Fatalf("%v: %s", err, again)
		}
		if fmt.Sprint(same.SubJobs) != fmt.Sprint(draft.SubJobs) {
			t.Fatalf("%+v\n%+v", same, draft)
		}
	})
}
