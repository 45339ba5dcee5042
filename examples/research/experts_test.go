package research_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/examples/research"
	"superstep.dev/examples/research/figures"
	"superstep.dev/examples/research/store"
	"superstep.dev/graphtest"
	"superstep.dev/job"
)

// expert returns the graph of one expert.
func expert(t testing.TB, name string) *superstep.Graph[job.WorkflowMessage] {
	s, _ := newStore(t)
	for _, e := range research.Experts(s, 200) {
		if e.Profile().Name == name {
			return e.Graph()
		}
	}
	t.Fatal("there is no expert " + name)
	return nil
}

// attempt is what one expert makes of an assignment.
func attempt(t *testing.T, name string, a job.Assignment) job.WorkflowMessage {
	t.Helper()
	a.Job, a.SubJob, a.Attempt, a.Expert = "r-1", "s", 1, name
	result, err := expert(t, name).Invoke(t.Context(), a)
	require.NoError(t, err)
	return result.Output
}

// table is the loader's result with the table of the example.
var table = job.Input{SubJob: "load", Artifacts: []job.Artifact{{Name: "birds", URI: store.Sample}}}

// Experts that are given what is of no use say so, and blame whoever gave it.
func TestExpertsSendBackWhatIsOfNoUse(t *testing.T) {
	loaded := attempt(t, "loader", job.Assignment{})
	require.Equal(t, job.Success, loaded.Status)
	require.JSONEq(t, `{"Adelie": 152, "Chinstrap": 68, "Gentoo": 124}`, field(t, loaded.Output, "species"))
	require.Equal(t, "11", field(t, loaded.Output, "incomplete"))
	for expert, inputs := range map[string][]job.Input{
		"analyst": {{SubJob: "load", Text: "no table"}},
		"critic":  {table},
		"writer":  {{SubJob: "check", Text: `{"analyses": [], "figures": 0}`}, {SubJob: "x", Text: "{"}},
	} {
		m := attempt(t, expert, job.Assignment{Goal: goal, Inputs: inputs})
		require.Equal(t, job.InputDataError, m.Status, expert)
		require.NotEmpty(t, m.Lesson, expert)
	}
	m := attempt(t, "analyst", job.Assignment{Goal: "Adelie and gentoo", Inputs: []job.Input{table}})
	require.Equal(t, job.TooComplicated, m.Status)
	require.JSONEq(t, `{"species": ["Adelie", "Gentoo"]}`, m.Output)

	invented := job.Input{SubJob: "liar", Text: `{"species": "Emperor", "method": "", "birds": 1, "figures": [{"measure": "body_mass_g",
		"n": 1, "mean": 30000, "sd": 0, "low": 1, "high": 1}]}`}
	good := attempt(t, "analyst", job.Assignment{Goal: "chinstrap", Inputs: []job.Input{table}})
	m = attempt(t, "critic", job.Assignment{Inputs: []job.Input{
		{SubJob: "honest", Text: good.Output, Artifacts: good.Artifacts}, invented}})
	require.Equal(t, job.InputDataError, m.Status)
	require.Equal(t, []string{"liar"}, m.Blames)
	require.Contains(t, m.Lesson, `there is no species "Emperor" in the data`)
}

func field(t *testing.T, text, name string) string {
	t.Helper()
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &all))
	return string(all[name])
}

// TestNoCrashPublishesTwice crashes the writer's worker everywhere, and once more after each crash.
func TestNoCrashPublishesTwice(t *testing.T) {
	analysis := attempt(t, "analyst", job.Assignment{Goal: "chinstrap", Inputs: []job.Input{table}})
	review := attempt(t, "critic", job.Assignment{Inputs: []job.Input{{SubJob: "a", Text: analysis.Output, Artifacts: analysis.Artifacts}}})
	require.Equal(t, job.Success, review.Status, review.Lesson)
	graphtest.Matrix(t, expert(t, "writer"), job.Assignment{Job: "r-1", SubJob: "write", Attempt: 1, Expert: "writer", JobGoal: goal,
		Inputs: []job.Input{{SubJob: "check", Text: review.Output}}}, graphtest.Answer(figures.BillDepth), graphtest.Pairs())
}
