package job_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"superstep.dev/job"
)

// TestCheckPlanNamesWhatIsWrong, precisely enough for whoever made the plan to make a better one.
func TestCheckPlanNamesWhatIsWrong(t *testing.T) {
	with := func(change func(s *job.DraftSubJob)) job.Draft {
		d := draft([]string{"a", "loader"}, []string{"b", "writer", "a"})
		change(&d.SubJobs[1])
		return d
	}
	wide := draft([]string{"b", "writer"})
	for i := range job.MaxDependencies + 1 {
		id := "n" + strings.Repeat("i", i%50) + string(rune('a'+i/50))
		wide.SubJobs = append(wide.SubJobs, job.DraftSubJob{ID: id, Goal: "g", Expert: "loader"})
		wide.SubJobs[0].Dependencies = append(wide.SubJobs[0].Dependencies, id)
	}
	var long job.Draft
	for i := range 40 {
		long.SubJobs = append(long.SubJobs, job.DraftSubJob{ID: string(rune('a' + i)), Goal: "g", Expert: "loader", Context: strings.Repeat("x", job.MaxContext)})
	}
	for _, c := range []struct {
		name, subjob, problem string
		d                     job.Draft
	}{
		{"empty", "", "it has no subjobs", job.Draft{}},
		{"huge", "", "it has 5 subjobs; 4 may be", job.Draft{SubJobs: make([]job.DraftSubJob, 5)}},
		{"no id", "", "subjob 2 has no id", with(func(s *job.DraftSubJob) { s.ID = "" })},
		{"two of an id", "a", "two subjobs have this id", with(func(s *job.DraftSubJob) { s.ID = "a" })},
		{"long id", strings.Repeat("i", 65), "its id has 65 bytes; 64 may be", with(func(s *job.DraftSubJob) { s.ID = strings.Repeat("i", 65) })},
		{"long goal", "b", "its goal has 8193 bytes; 8192 may be", with(func(s *job.DraftSubJob) { s.Goal = strings.Repeat("g", job.MaxGoal+1) })},
		{"blank goal", "b", "it has no goal", with(func(s *job.DraftSubJob) { s.Goal = " \n" })},
		{"long context", "b", "its context has 32769 bytes; 32768 may be", with(func(s *job.DraftSubJob) { s.Context = strings.Repeat("c", job.MaxContext+1) })},
		{"long criteria", "b", "its completion_criteria has 4097 bytes; 4096 may be", with(func(s *job.DraftSubJob) { s.CompletionCriteria = strings.Repeat("c", job.MaxNote+1) })},
		{"long thinking", "b", "its thinking has 4097 bytes; 4096 may be", with(func(s *job.DraftSubJob) { s.Thinking = strings.Repeat("c", job.MaxNote+1) })},
		{"long schema", "b", "its output_schema has 4097 bytes; 4096 may be", with(func(s *job.DraftSubJob) { s.OutputSchema = strings.Repeat("c", job.MaxNote+1) })},
		{"no UTF-8", "b", "its goal is not UTF-8", with(func(s *job.DraftSubJob) { s.Goal = "\xff" })},
		{"no expert", "b", "it has no assigned_expert", with(func(s *job.DraftSubJob) { s.Expert = "" })},
		{"unknown expert", "b", `there is no expert "poet"; there are: loader, writer`, with(func(s *job.DraftSubJob) { s.Expert = "poet" })},
		{"itself", "b", "it depends on itself", with(func(s *job.DraftSubJob) { s.Dependencies = []string{"b"} })},
		{"unknown dependency", "b", `it depends on "c", which is no subjob of the plan`, with(func(s *job.DraftSubJob) { s.Dependencies = []string{"a", "c"} })},
		{"cycle", "", "subjobs depend on each other in a circle: a → b → a", draft([]string{"b", "writer", "a"}, []string{"a", "writer", "b"})},
		{"many dependencies", "b", "it depends on 201 subjobs; 200 may be", wide},
		{"all too long", "", "it takes 1330929 bytes; 1179648 may be: make fewer subjobs, or shorter texts", long},
	} {
		most := job.MaxSubJobs
		if c.name == "huge" {
			most = 4
		}
		bad := new(job.BadPlanError)
		if err := job.CheckPlan(c.d, experts("loader", "writer"), most); !errors.As(err, &bad) || bad.Problem != c.problem || bad.SubJob != c.subjob {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	tolerated := draft([]string{"a", " LOAD-er"}, []string{"b", "Writer.", "a", "a"})
	if err := job.CheckPlan(tolerated, experts("loader", "writer"), 2); err != nil {
		t.Error(err)
	}
}

// FuzzCheckPlan: whatever a plan says, it is refused, or the job can be carried out with it.
func FuzzCheckPlan(f *testing.F) {
	for _, seed := range []string{
		`{"subjobs":[{"id":"a","goal":"g","assigned_expert":"Loader"},{"id":"b","goal":"g","assigned_expert":"writer","dependencies":["a","a"]}]}`,
		`{"subjobs":[{"id":"a b","goal":"g","assigned_expert":"loader","dependencies":["1"]},{"id":"1","goal":"h","assigned_expert":"loader","dependencies":["a b"]}]}`,
		`{"subjobs":[{"id":"2","goal":"g","assigned_expert":"loader"},{"id":"ü","goal":"h","assigned_expert":"loader","dependencies":["2"]}],"usage":{"tokens":-5}}`,
		`{"subjobs":[]}`, `{}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var d job.Draft
		if json.Unmarshal(data, &d) != nil {
			return
		}
		b := newBoard(t, job.Job{Policy: job.Policy{MaxParallel: 100}}, "loader", "writer")
		b.Ready(start)
		err := job.CheckPlan(d, experts("loader", "writer"), job.MaxSubJobs)
		b.Planned(d, nil, start)
		if (err == nil) != (len(b.SubJobs) > 0) {
			t.Fatalf("checked: %v; and the board has %d subjobs", err, len(b.SubJobs))
		}
		if err != nil {
			return
		}
		var ran []string
		for w := b.Ready(start); !w.Done; w = b.Ready(start) {
			if len(w.Run) == 0 {
				t.Fatalf("the job hangs behind %v", ran)
			}
			for _, a := range w.Run {
				ran = append(ran, a.SubJob)
				b.Reported(job.Attempt{SubJob: a.SubJob, Attempt: a.Attempt}, job.WorkflowMessage{Status: job.Success}, start)
			}
		}
		if b.Status != job.StatusFinished || len(ran) != len(d.SubJobs) {
			t.Fatalf("%s after %v", b.Status, ran)
		}
	})
}

func TestGraph(t *testing.T) {
	var g job.Graph
	for _, v := range [][]string{{"z"}, {"y", "x", "z"}, {"x", "z", "z", "unknown"}, {"w"}} {
		if !g.Add(v[0], v[1:]) {
			t.Fatalf("%s cannot be added", v[0])
		}
	}
	if g.Add("z", []string{"w"}) || g.Has("unknown") || !g.Has("w") {
		t.Fatal("an id was added twice, or an unknown one is there")
	}
	for name, got := range map[string][]string{
		"z x y w": g.Topological(), "x z": g.Predecessors("y"), "z": g.Predecessors("x"), "y x": g.Successors("z"), "z w": g.Roots(),
		"y w": g.Tails(), "": g.Cycle(),
	} {
		if want := strings.Fields(name); !slices.Equal(got, want) {
			t.Errorf("%v, not %v", got, want)
		}
	}
	if got := g.Descendants("z"); !slices.Equal(got, []string{"y", "x"}) {
		t.Errorf("%v", got)
	}
	if got := g.Descendants("x", "z", "y"); !slices.Equal(got, []string{"y", "x"}) {
		t.Errorf("%v", got)
	}
	var cyclic job.Graph
	for _, v := range [][]string{{"before"}, {"behind", "a"}, {"a", "c", "before"}, {"b", "a"}, {"c", "b"}} {
		cyclic.Add(v[0], v[1:])
	}
	if got := cyclic.Cycle(); !slices.Equal(got, []string{"b", "c", "a"}) {
		t.Errorf("%v", got)
	}
	if got := cyclic.Topological(); !slices.Equal(got, []string{"before"}) {
		t.Errorf("%v", got)
	}
}
