package record

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/thread"
)

// asking is who asks a record to wait for a change, and asks again when it has an answer.
type asking struct {
	env     *testsuite.TestWorkflowEnvironment
	id      string
	answers int
}

func (a *asking) ask() {
	a.env.UpdateWorkflow(updateAwait, fmt.Sprint(a.id, a.answers), a, await{Behind: 100})
}

func (a *asking) Accept()          {}
func (a *asking) Reject(err error) {}
func (a *asking) Complete(any, error) {
	if a.answers++; a.answers < 1000 {
		a.env.RegisterDelayedCallback(a.ask, time.Millisecond)
	}
}

// changing is who changes a record again and again.
type changing struct {
	*testing.T
	env     *testsuite.TestWorkflowEnvironment
	changes int
}

func (c *changing) change() {
	c.env.UpdateWorkflow(updatePut, fmt.Sprint("change ", c.changes), c, put{})
}

func (c *changing) Accept()          {}
func (c *changing) Reject(err error) { require.NoError(c, err) }
func (c *changing) Complete(_ any, err error) {
	require.NoError(c, err)
	if c.changes++; c.changes < 2*mostUpdates {
		c.env.RegisterDelayedCallback(c.change, time.Millisecond)
	}
}

// doing are the activities of a record, as a test has them.
type doing struct {
	begins, settles int
	ends            bool
}

func (d *doing) env(t *testing.T) *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterWorkflowWithOptions(Keep, workflow.RegisterOptions{Name: Workflow})
	env.RegisterActivityWithOptions(func(context.Context, thread.StartRequest, bool) (begun, error) {
		d.begins++
		return begun{Place: "here"}, nil
	}, activity.RegisterOptions{Name: activityBegin})
	env.RegisterActivityWithOptions(func(ctx context.Context, _ string) (ending, error) {
		if d.settles++; d.ends {
			return ending{Status: Success, Stands: Idle}, nil
		}
		return ending{}, activity.ErrResultPending
	}, activity.RegisterOptions{Name: activitySettle})
	env.SetWorkflowRunTimeout(time.Hour)
	env.SetTestTimeout(time.Minute)
	return env
}

// A record that takes many updates while a run is under way, which somebody follows, begins a new history by their count, and leads the run
// on from there: it is not begun twice. What it is asked meanwhile is answered.
func TestABusyRecordMoves(t *testing.T) {
	d := &doing{}
	env := d.env(t)
	changes, follows := &changing{T: t, env: env}, &asking{env: env, id: "follower"}
	env.RegisterDelayedCallback(changes.change, time.Second)
	env.RegisterDelayedCallback(follows.ask, time.Second)
	run := Run{ID: "r", Status: Pending, Created: time.Now(), Start: thread.StartRequest{Graph: "g"}}
	env.ExecuteWorkflow(Keep, Thread{ID: "t", Under: "t", Metadata: map[string]json.RawMessage{}, Runs: []Run{run}})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &next)
	var left Thread
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &left))
	require.Equal(t, []any{Running, "here", 1, 1}, []any{left.Runs[0].Status, left.Runs[0].Place, d.begins, d.settles})
	require.Less(t, changes.changes, mostUpdates+10)

	d.ends = true
	env = d.env(t)
	env.RegisterDelayedCallback(func() { env.SetCurrentHistoryLength(mostEvents + 1) }, time.Minute)
	env.ExecuteWorkflow(Keep, left)
	require.ErrorAs(t, env.GetWorkflowError(), &next)
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &left))
	require.Equal(t, []any{Success, Idle, 1, 2}, []any{left.Runs[0].Status, left.Stands, d.begins, d.settles})
}

// Two servers that follow a record all the time, one always waiting while the other asks again, do not keep a record with a full
// history from beginning a new one.
func TestFollowersDoNotHoldAFullHistory(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterWorkflowWithOptions(Keep, workflow.RegisterOptions{Name: Workflow})
	env.SetTestTimeout(time.Minute)
	env.RegisterDelayedCallback((&asking{env: env, id: "one"}).ask, time.Second)
	env.RegisterDelayedCallback((&asking{env: env, id: "two"}).ask, awaitTime/2)
	env.RegisterDelayedCallback(func() { env.SetCurrentHistoryLength(5000) }, awaitTime)
	env.SetWorkflowRunTimeout(time.Hour)
	env.ExecuteWorkflow(Keep, Thread{ID: "t"})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &next)
}

// What is kept of runs that have ended is bounded together: of older ones it is forgotten what was asked for, and the runs stay.
func TestWhatIsKeptOfRunsIsBoundedTogether(t *testing.T) {
	var all Thread
	for n := range mostRuns {
		all.Runs = append(all.Runs, Run{ID: strconv.Itoa(n), Status: Success, Metadata: map[string]json.RawMessage{"k": json.RawMessage(`"` + strings.Repeat("x", 50<<10) + `"`)}})
		all.trim()
	}
	require.Len(t, all.Runs, mostRuns)
	text, err := json.Marshal(all)
	require.NoError(t, err)
	require.Less(t, len(text), mostKeptOfAll*3/2)
	require.Nil(t, all.Runs[0].Metadata)
	require.NotNil(t, all.Runs[mostRuns-10].Metadata)
}
