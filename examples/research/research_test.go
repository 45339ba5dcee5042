package research_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/examples/research"
	"superstep.dev/examples/research/data"
	"superstep.dev/examples/research/figures"
	"superstep.dev/examples/research/store"
	"superstep.dev/graphtest"
	"superstep.dev/job"
	"superstep.dev/job/leader"
	"superstep.dev/thread"
)

const goal = "How do the Palmer penguins differ?"

func newStore(t testing.TB) (s *store.Store, dir string) {
	dir = t.TempDir()
	s, err := store.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, dir
}

func newLeader(t testing.TB) (l *leader.Leader, s *store.Store, dir string) {
	s, dir = newStore(t)
	l, err := research.Leader(research.Rules(), s, 200)
	require.NoError(t, err)
	return l, s, dir
}

// answered is what a person says who wants to begin with the body mass, and notes what was asked.
func answered(t *testing.T, asked *[]research.Lead) leader.Option {
	return leader.WithExpertAnswers(func(_ context.Context, a job.Assignment, q thread.Question) (any, error) {
		var lead research.Lead
		require.NoError(t, json.Unmarshal(q.Value, &lead))
		require.Equal(t, "writer", a.Expert)
		*asked = append(*asked, lead)
		return figures.BodyMass, nil
	})
}

// requireReport checks the one report that was published: the authors of the data set publish the same figures.
func requireReport(t *testing.T, dir, text string) {
	t.Helper()
	reports, err := filepath.Glob(filepath.Join(dir, "reports", "*"))
	require.NoError(t, err)
	require.Len(t, reports, 1)
	for _, line := range []string{"# " + goal, "## Body mass (g)", "| Adelie | 151 | 3700.66 | 458.57 |",
		"| Chinstrap | 68 | 3733.09 | 384.34 |", "| Gentoo | 123 | 5076.02 | 504.12 |"} {
		require.Contains(t, text, line)
	}
}

// bySubJob are the subjobs of a job by who did them and what.
func bySubJob(v job.View) map[string]job.SubJob {
	all := map[string]job.SubJob{}
	for _, s := range v.SubJobs {
		all[s.Expert+": "+s.Goal] = s
	}
	return all
}

func TestResearch(t *testing.T) {
	l, s, dir := newLeader(t)
	var asked []research.Lead
	answer, err := l.Invoke(t.Context(), job.Job{ID: "r-1", Goal: goal}, answered(t, &asked))
	require.NoError(t, err)
	requireReport(t, dir, answer.Text)
	require.Len(t, asked, 1)
	require.Equal(t, figures.FlipperLength, asked[0].Choices[0].Measure)

	requireWentAsPlanned(t, answer.View)
	last := answer.Parts[len(answer.Parts)-1]
	text, err := s.Read(last.Artifacts[0].URI)
	require.NoError(t, err)
	require.Equal(t, last.Text, string(text))
}

// TestResearchOnTemporal is the same on a server: the question is one of a thread, and waits there.
func TestResearchOnTemporal(t *testing.T) {
	l, _, dir := newLeader(t)
	c := graphtest.Leaders(t, l)
	v, err := c.SubmitJob(t.Context(), thread.SubmitJob{Leader: "research", Job: job.Job{Goal: goal}})
	require.NoError(t, err)
	for e, err := range c.FollowJob(t.Context(), v.ID, 0) {
		require.NoError(t, err)
		if e.Kind != "started" || e.Expert != "writer" {
			continue
		}
		var asking thread.View
		require.Eventually(t, func() bool { // the leader has told its server to start it
			asking, err = c.Wait(t.Context(), job.AttemptThread(v.ID, e.SubJob, e.Attempt))
			return err == nil
		}, 3*time.Minute, 10*time.Millisecond, "the writer's thread: %v", err)
		require.Len(t, asking.Questions, 1)
		require.Contains(t, asking.Questions[0].Text(), "Which measure should lead the report?")
		_, err = c.Resume(t.Context(), thread.ResumeRequest{Thread: asking.Thread, Value: json.RawMessage(`"wings"`)})
		require.ErrorIs(t, err, thread.ErrBadInput)
		_, err = c.Resume(t.Context(), thread.ResumeRequest{Thread: asking.Thread, Value: json.RawMessage(`"body_mass_g"`)})
		require.NoError(t, err)
	}
	answer, err := c.JobAnswer(t.Context(), v.ID)
	require.NoError(t, err)
	requireReport(t, dir, answer.Text)
	requireWentAsPlanned(t, answer.View)
}

// requireWentAsPlanned checks who worked how often: the analysis became three, two of which were sent back.
func requireWentAsPlanned(t *testing.T, v job.View) {
	t.Helper()
	require.Equal(t, job.StatusFinished, v.Status)
	require.Equal(t, 6, v.Total, "the analysis became three")
	require.Equal(t, job.Usage{Writes: 1}, v.Spent)
	for name, attempts := range map[string]int{
		"loader: Read and check the birds.":                       1,
		"analyst: Describe the birds that this is about: " + goal: 1,
		"analyst: Describe the Adelie penguins.":                  2,
		"analyst: Describe the Chinstrap penguins.":               1,
		"analyst: Describe the Gentoo penguins.":                  2,
		"critic: Check every figure against the birds.":           2,
		"writer: Write and publish the report.":                   1,
	} {
		require.Equal(t, attempts, bySubJob(v)[name].Attempts, name)
	}
	require.True(t, bySubJob(v)["analyst: Describe the birds that this is about: "+goal].Legacy)
	require.Contains(t, bySubJob(v)["analyst: Describe the Adelie penguins."].Lessons[0],
		"Adelie, body_mass_g: the mean 3676.32 is taken over 152 birds, and 151 of them were measured: over those it is 3700.66")
}

// Birds of one kind are no more than one analyst can describe, and all of them were measured: nobody works twice.
func TestOneSpeciesIsNotTooComplicated(t *testing.T) {
	l, _, _ := newLeader(t)
	var asked []research.Lead
	answer, err := l.Invoke(t.Context(), job.Job{Goal: "How heavy is a Chinstrap?"}, answered(t, &asked))
	require.NoError(t, err)
	require.Contains(t, answer.Text, "Chinstrap has a mean body mass of 3733.09 g (n = 68).")
	require.Len(t, answer.View.SubJobs, 4)
	for _, s := range answer.View.SubJobs {
		require.Equal(t, 1, s.Attempts, s.Goal)
	}
}

func TestDataThatCannotBeRead(t *testing.T) {
	l, _, dir := newLeader(t)
	for _, uri := range []string{"store:none.csv", "file:///etc/passwd"} {
		_, err := l.Invoke(t.Context(), job.Job{Goal: goal, Artifacts: []job.Artifact{{Name: "birds", URI: uri}},
			Policy: job.Policy{MaxRetries: -1}})
		var failed *thread.JobError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, job.StatusFailed, failed.View.Status)
		require.Contains(t, failed.Error(), uri)
	}
	reports, err := filepath.Glob(filepath.Join(dir, "reports", "*"))
	require.NoError(t, err)
	require.Empty(t, reports)
}

func TestTheDataAreThoseOfTheREADME(t *testing.T) {
	readme, err := os.ReadFile("data/README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), fmt.Sprintf("`%x`", sha256.Sum256(data.Penguins)))
}

func TestFromEnv(t *testing.T) {
	for name, c := range map[string]struct {
		env     map[string]string
		problem string
	}{
		"rules":        {nil, ""},
		"a model":      {map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, ""},
		"no URL":       {map[string]string{"OPENAI_BASE_URL": "nowhere"}, "OPENAI_BASE_URL"},
		"no number":    {map[string]string{"RESEARCH_RESAMPLES": "many"}, "want a number from 1 to 2000000"},
		"too many":     {map[string]string{"RESEARCH_RESAMPLES": "2000001"}, "want a number from 1 to 2000000"},
		"no directory": {map[string]string{"RESEARCH_DIR": "/dev/null/x"}, "RESEARCH_DIR"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l, err := research.LeaderOf(func(key string) string {
				if v := c.env[key]; v != "" || key != "RESEARCH_DIR" {
					return v
				}
				return dir
			})
			if c.problem != "" {
				require.ErrorContains(t, err, c.problem)
				return
			}
			require.NoError(t, err)
			require.Len(t, l.Experts(), 4)
		})
	}
}
