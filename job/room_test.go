package job

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestQuotedIsWhatJSONTakes, for every text: bounds on stored bytes count what is stored.
func TestQuotedIsWhatJSONTakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.StringMatching(`[<>&"\\\x{2028}\x{2029}\x{7f}\n\r\t\x{0}-\x{1f}é☃]*`)).Draw(t, "text")
		data, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if quoted(text) != len(data) {
			t.Fatalf("%q takes %d bytes, not %d", text, len(data), quoted(text))
		}
		room := rapid.IntRange(-1, 40).Draw(t, "room")
		switch short := clip(text, room); {
		case short != "" && quoted(short) > room:
			t.Fatalf("%q takes %d bytes, and there is room for %d", short, quoted(short), room)
		case quoted(valid(text)) <= room && short != valid(text):
			t.Fatalf("%q was cut to %q, and there was room for it", text, short)
		}
	})
}

const huge = MaxAmount

// finishedAtBounds is a subjob with all that one that has finished can have; the texts that bounds of their own count are
// left out.
func finishedAtBounds() *SubJob {
	at := time.Date(2026, 12, 31, 23, 59, 59, 999e6, time.UTC)
	s := &SubJob{
		DraftSubJob: DraftSubJob{
			ID: strings.Repeat("i", MaxID), Goal: "<", Context: "&", CompletionCriteria: "\x01", Thinking: "\"", OutputSchema: "{}",
			Expert: strings.Repeat("e", MaxID),
		},
		Parent: strings.Repeat("p", MaxID), LifeCycle: 20, Status: StatusFinished, PlanVersion: 1e6, Attempts: 1e6,
		Started: at, Ended: at, Usage: Usage{Tokens: huge, MicroUSD: huge, Writes: huge, Unknown: true}, Reopens: map[string]int{},
		Result: &Output{Stored: &Reference{RunID: strings.Repeat("r", 36)}, Bytes: MaxOutput, SHA256: strings.Repeat("a", 64), Attempt: 1e6},
	}
	for i := range MaxDependencies {
		s.Dependencies = append(s.Dependencies, strings.Repeat("d", MaxID-3)+string(rune('0'+i/100))+string(rune('0'+i/10%10))+string(rune('0'+i%10)))
		s.Reopens[s.Dependencies[i]] = 100
	}
	return s
}

// TestASubJobTakesWhatIsCounted: what [MaxPlanText] counts for a subjob is at least what it takes in the job's state.
func TestASubJobTakesWhatIsCounted(t *testing.T) {
	finished := finishedAtBounds()
	open := finishedAtBounds()
	open.Status, open.Result, open.Open, open.Cancelled, open.Stale = StatusRunning, nil, true, true, true
	open.Refused, open.Failures = strings.Repeat("a", 64), 100
	open.Allowance = Budget{Tokens: huge, MicroUSD: huge, Writes: huge, Seconds: huge}
	waiting := finishedAtBounds()
	waiting.Status, waiting.Result, waiting.Failures, waiting.RetryAt, waiting.Refused = StatusCreated, nil, 100, waiting.Ended, open.Refused
	replaced := finishedAtBounds()
	replaced.Status, replaced.Result, replaced.Legacy = StatusStopped, nil, true
	for _, s := range []*SubJob{finished, open, waiting, replaced} {
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if counted := s.planSize() + s.blame(); len(data)+1 > counted {
			t.Errorf("%s (open %v): %d bytes, and %d are counted", s.Status, s.Open, len(data)+1, counted)
		}
	}
}

// fill is a text of up to n bytes as JSON, of bytes that take six each.
func fill(n int) string { return strings.Repeat("<", max(0, n-2)/6) }

// atBounds is a job that has the most of everything, with that many subjobs.
func atBounds(t *testing.T, subjobs int) *Board {
	t.Helper()
	now := time.Date(2026, 12, 31, 23, 59, 59, 999e6, time.UTC)
	expert := Profile{Name: strings.Repeat("e", MaxID), Description: strings.Repeat("d", MaxNote), Graph: strings.Repeat("g", 256)}
	experts := []Profile{expert}
	for i := range 9 {
		expert.Name = expert.Name[1:] + string(rune('0'+i))
		experts = append(experts, expert)
	}
	j := Job{
		ID: strings.Repeat("j", MaxID), Goal: strings.Repeat("\"", MaxGoal-4), Context: strings.Repeat("\\", MaxContext), Requester: strings.Repeat("r", 256),
		Policy: Policy{MaxParallel: 100, MaxReopens: 100, MaxReopensTotal: 1000, MaxRetries: 100},
		Budget: Budget{Tokens: huge, MicroUSD: huge, Writes: huge, Seconds: huge, SubJobs: huge, Attempts: huge},
	}
	for range MaxArtifactText / 2048 {
		j.Artifacts = append(j.Artifacts, Artifact{Name: "a", URI: strings.Repeat("u", 1950)})
	}
	b, err := New(j, experts, now)
	if err != nil {
		t.Fatal(err)
	}
	b.Ready(now)
	b.Planned(planAtBounds(subjobs, experts[0].Name), nil, now)
	if len(b.SubJobs) != subjobs {
		t.Fatal(b.Plans[0].Lesson)
	}
	return b
}

// planAtBounds is a plan of that many subjobs that takes as much as a plan may.
func planAtBounds(subjobs int, expert string) Draft {
	var d Draft
	size := 0
	for i := range subjobs {
		s := DraftSubJob{ID: string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)), Goal: "g", Expert: expert}
		size += s.size() + kept("assigned_expert", expert)
		d.SubJobs = append(d.SubJobs, s)
	}
	each := (MaxPlanText - size) / subjobs
	for i := range d.SubJobs {
		d.SubJobs[i].Goal += fill(min(each, 6*MaxGoal))
		d.SubJobs[i].Context = fill(min(each-quoted(d.SubJobs[i].Goal)-32, 6*MaxContext))
	}
	return d
}

// TestABoardAtAllBoundsFitsIntoAPayload: whatever is told to a board, it takes less than 1.6 MiB as JSON, so that it can be
// a workflow's input and its result.
func TestABoardAtAllBoundsFitsIntoAPayload(t *testing.T) {
	const most = 16 << 20 / 10
	for _, subjobs := range []int{3, 40, 400, 1900} {
		b := atBounds(t, subjobs)
		now, largest := b.Events[0].Time, 0
		weigh := func() {
			data, err := json.Marshal(b)
			if err != nil {
				t.Fatal(err)
			}
			if largest = max(largest, len(data)); len(data) > most {
				t.Fatalf("%d subjobs: %d bytes: plans %d, notes %d, inline %d, events %d", subjobs, len(data), b.planSize(), b.notes(), b.inline(), b.EventBytes)
			}
		}
		for round := 0; b.Status == StatusRunning && round < 15; round++ {
			now = now.Add(time.Minute)
			w := b.Ready(now)
			for i, a := range w.Run {
				b.Reported(Attempt{SubJob: a.SubJob, Attempt: a.Attempt}, reportAtBounds(round, i, a), now)
			}
			weigh()
		}
		for i := 0; i < len(b.SubJobs); i += 1 + len(b.SubJobs)/60 {
			_ = b.Retry(b.SubJobs[i].ID, strings.Repeat(string(rune('a'+i%26)), MaxNote), strings.Repeat("b", 256), now) // some have not begun
		}
		weigh()
		if err := b.Stop(Halt{Reason: strings.Repeat("<", MaxNote), By: strings.Repeat("b", 256)}, now); err != nil && b.Status == StatusRunning {
			t.Fatal(err)
		}
		weigh()
		t.Logf("%d subjobs: at most %d bytes; notes %d, inline %d, events %d", subjobs, largest, b.notes(), b.inline(), b.EventBytes)
	}
}

// reportAtBounds is a report with as much as one may have.
func reportAtBounds(round, i int, a Assignment) WorkflowMessage {
	m := WorkflowMessage{
		Status: Success, Output: strings.Repeat("<", MaxInline), Evaluation: strings.Repeat("\x01", MaxNote), Usage: Usage{Tokens: math.MaxInt64, Unknown: true},
		Lesson: strings.Repeat(string(rune('a'+(round+i)%26)), MaxNote), Stored: &Reference{RunID: strings.Repeat("r", 36), Bytes: MaxInline, SHA256: strings.Repeat("a", 64)},
	}
	switch {
	case i%7 == 0:
		m.Artifacts = slices.Repeat([]Artifact{{Name: "a", URI: strings.Repeat("u", 2048)}}, 7)
	case round%3 == 0 || i%5 == 0:
		m.Status = ExecutionError
	case i%11 == 3:
		m.Status = TooComplicated
	}
	return m
}

// TestLargeJobsAreQuick: 2,000 subjobs, wide, deep, and in layers that depend on each other, from the plan to the end.
func TestLargeJobsAreQuick(t *testing.T) {
	for name, before := range map[string]func(i int) []int{
		"wide":   func(i int) []int { return nil },
		"deep":   func(i int) []int { return []int{i - 1} },
		"layers": func(i int) []int { return []int{i - 100, i - 99, i - 98} },
	} {
		began := time.Now()
		b := largeJob(t, before)
		for {
			w := b.Ready(began)
			for _, a := range w.Run {
				b.Reported(Attempt{SubJob: a.SubJob, Attempt: a.Attempt}, WorkflowMessage{Status: Success, Output: "x"}, began)
			}
			if w.Done {
				break
			}
		}
		took := time.Since(began)
		t.Logf("%s: %s", name, took)
		if b.Status != StatusFinished || len(b.SubJobs) != MaxSubJobs {
			t.Fatalf("%s: %s", name, b.Status)
		}
		if took > time.Minute { // it takes a third of a second; the race detector on a busy machine makes it a quarter of a minute
			t.Errorf("%s: %s for %d subjobs", name, took, MaxSubJobs)
		}
	}
}

func largeJob(t *testing.T, before func(i int) []int) *Board {
	t.Helper()
	b, err := New(Job{ID: "j", Goal: "g", Policy: Policy{MaxParallel: 100}}, []Profile{{Name: "e", Graph: "e"}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var d Draft
	id := func(i int) string {
		return "s" + string(rune('a'+i/676%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i%26))
	}
	for i := range MaxSubJobs {
		s := DraftSubJob{ID: id(i), Goal: "g", Expert: "e"}
		for _, on := range before(i) {
			if on >= 0 && on < i {
				s.Dependencies = append(s.Dependencies, id(on))
			}
		}
		d.SubJobs = append(d.SubJobs, s)
	}
	b.Ready(time.Now())
	b.Planned(d, nil, time.Now())
	if len(b.SubJobs) != MaxSubJobs {
		t.Fatal(b.Plans[0].Lesson)
	}
	return b
}
