package record

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
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

// Two servers that follow a record all the time, one always waiting while the other asks again, do not keep a record with a full
// history from beginning a new one.
func TestFollowersDoNotHoldAFullHistory(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterWorkflowWithOptions(Keep, workflow.RegisterOptions{Name: Workflow})
	env.RegisterDelayedCallback((&asking{env: env, id: "one"}).ask, time.Second)
	env.RegisterDelayedCallback((&asking{env: env, id: "two"}).ask, awaitTime/2)
	env.RegisterDelayedCallback(func() { env.SetCurrentHistoryLength(5000) }, awaitTime)
	env.SetWorkflowRunTimeout(time.Hour)
	env.ExecuteWorkflow(Keep, Thread{ID: "t"})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &next)
}
