package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"superstep.dev/internal/testserver"
	"superstep.dev/job"
	"superstep.dev/thread"
)

// everyKill makes TestB1LeaderIsKilled kill behind every event of the job, not behind every fifth.
const everyKill = "SUPERSTEP_EVERY_KILL"

// twelve is what the job of twelve subjobs makes.
const twelve = "end(left(part-1(check(mended join-1(a(load()) b(load())) join-2(c(load()) d(load())))) part-2(check(mended join-1(a(load()) b(load())) " +
	"join-2(c(load()) d(load()))))) right(part-1(check(mended join-1(a(load()) b(load())) join-2(c(load()) d(load())))) " +
	"part-2(check(mended join-1(a(load()) b(load())) join-2(c(load()) d(load()))))))"

// TestB1LeaderIsKilled kills the worker that leads a job of twelve subjobs, one of which reopens a predecessor and one of
// which is planned again, behind one event after the other: the answer is the same each time, and no attempt is executed
// again once the leader knows how it ended.
func TestB1LeaderIsKilled(t *testing.T) {
	r := newRig(t)
	w := r.graphsWorker("leads-0")
	_, events := r.killedBehind("", 0, nil)
	require.Greater(t, len(events), 30)
	step := 5
	if os.Getenv(everyKill) != "" {
		step = 1
	}
	kills := 0
	for at := 1; at < len(events); at += step {
		kills++
		answer, events := r.killedBehind(fmt.Sprint(at), int64(at), func() {
			r.kill(w)
			w = r.graphsWorker(fmt.Sprintf("leads-%d", kills))
		})
		require.Equal(t, twelve, answer.Text, "killed behind event %d", at)
		require.Equal(t, 13, answer.View.Total, "killed behind event %d: big became two", at)
		seen := map[string]int{}
		for _, e := range events {
			seen[e.Kind]++
		}
		require.Equal(t, []int{1, 1}, []int{seen["reopened"], seen["replaced"]}, "killed behind event %d", at)
	}
	t.Logf("%d kills of %d events", kills, len(events))
}

// killedBehind submits the job of twelve, calls kill behind that event, and returns the answer and what happened.
func (r *rig) killedBehind(name string, at int64, kill func()) (thread.JobAnswer, []job.Event) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	dir := filepath.Join(r.dir, "job"+name)
	require.NoError(r.t, os.MkdirAll(dir, 0o755))
	id := "k" + testserver.Queue(r.t)
	r.until("the job is submitted", func() bool {
		_, err := r.client.SubmitJob(ctx, thread.SubmitJob{Leader: "foreman", RequestID: id, Job: job.Job{ID: id, Goal: "twelve", Context: dir,
			Policy: job.Policy{MaxRetries: -1}}})
		return err == nil
	})
	var events []job.Event
	for e, err := range r.client.FollowJob(ctx, id, 0) {
		require.NoError(r.t, err)
		if events = append(events, e); e.Seq == at {
			kill()
		}
	}
	answer, err := r.client.JobAnswer(ctx, id)
	require.NoError(r.t, err)
	r.onlyOnce(id, dir)
	return answer, events
}

// onlyOnce wants no attempt to begin after its run's end is in the leader's history.
func (r *rig) onlyOnce(id, dir string) {
	r.t.Helper()
	heard := map[string]time.Time{}
	history := r.temporal.GetWorkflowHistory(r.t.Context(), job.WorkflowID(id), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		e, err := history.Next()
		require.NoError(r.t, err)
		if done := e.GetChildWorkflowExecutionCompletedEventAttributes(); done != nil {
			heard[done.GetWorkflowExecution().GetWorkflowId()] = e.GetEventTime().AsTime()
		}
	}
	require.Len(r.t, heard, 16, "12 subjobs, 2 parts, and join-1 and check once more")
	text, err := os.ReadFile(filepath.Join(dir, "begun"))
	require.NoError(r.t, err)
	begun := map[string]int{}
	for line := range strings.Lines(string(text)) {
		thread, at, _ := strings.Cut(strings.TrimSpace(line), " ")
		begun[thread]++
		ms, err := strconv.ParseInt(at, 10, 64)
		require.NoError(r.t, err)
		require.LessOrEqual(r.t, ms, heard[thread].UnixMilli(), "%s began after it had ended", thread)
	}
	require.Len(r.t, begun, 16)
}
