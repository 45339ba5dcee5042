package main_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// noteCommits has a table say of each row that is inserted whether its commit waits for the disk.
const noteCommits = `
	CREATE TABLE IF NOT EXISTS commits (of text, waits text);
	CREATE OR REPLACE FUNCTION note_commit() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO commits VALUES (TG_TABLE_NAME, current_setting('synchronous_commit'));
		RETURN NULL;
	END $$;
	CREATE TRIGGER note AFTER INSERT OR UPDATE ON `

// Every row of a run, of its events and of lists is on the disk before the server goes on.
func TestEveryCommitOnPostgresWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	cluster, name := postgres(t), newDatabase()
	s := startOn(t, []string{"--postgres", cluster.dsn("me", name)})
	for _, table := range []string{"history_node", "history_tree", "executions", "current_executions", "shards", "visibility_tasks", "transfer_tasks"} {
		require.NoError(t, cluster.exec(name, noteCommits+table+" FOR EACH ROW EXECUTE FUNCTION note_commit()"))
	}
	require.NoError(t, cluster.exec(name+"_visibility", noteCommits+"executions_visibility FOR EACH ROW EXECUTE FUNCTION note_commit()"))
	c, ctx := dial(t, s.address), within(t, time.Minute)
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "run-1", TaskQueue: "nobody"}, "nothing")
	require.NoError(t, err)
	require.NoError(t, c.SignalWorkflow(ctx, "run-1", "", "say", "hello"))
	require.NoError(t, c.TerminateWorkflow(ctx, "run-1", "", "enough"))

	require.Equal(t, 3, cluster.count(t, name, "commits WHERE of = 'history_node'"))
	require.Positive(t, cluster.count(t, name, "commits WHERE of = 'executions'"))
	require.Eventually(t, func() bool {
		return cluster.count(t, name+"_visibility", "commits") > 1
	}, startTimeout, poll)
	require.Zero(t, cluster.count(t, name, "commits WHERE waits <> 'on'"))
	require.Zero(t, cluster.count(t, name+"_visibility", "commits WHERE waits <> 'on'"))
	require.Zero(t, s.stop(t))
}

// PostgreSQL crashes right after a list has shown that a run has ended, under a server that lives on: lists go on saying so.
func TestListsOutliveACrashOfPostgres(t *testing.T) {
	t.Parallel()
	cluster := ownPostgres(t)
	s := startOn(t, []string{"--postgres", cluster.dsn("me", newDatabase())})
	c, ctx := dial(t, s.address), within(t, 5*time.Minute)
	const crashes = 5
	for crash := range crashes {
		for _, id := range []string{"a", "b", "c"} {
			_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: "nobody"}, "nothing")
			require.NoError(t, err)
			require.NoError(t, c.TerminateWorkflow(ctx, id, "", "enough"))
		}
		require.Eventually(t, func() bool {
			return listed(ctx, t, c, "ExecutionStatus = 'Terminated'") == 3*(crash+1)
		}, startTimeout, poll)
		cluster.crash(t)
		requireListed(ctx, t, c, 3*(crash+1))
	}
	for _, id := range []string{"a", "b", "c"} {
		require.True(t, hasEvent(ctx, c, id, enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED))
	}
	require.Zero(t, s.stop(t))
}

// requireListed waits until the server has its database again, and requires that lists show as many runs that have ended, and none that runs.
func requireListed(ctx context.Context, t *testing.T, c client.Client, ended int) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{})
		return err == nil
	}, startTimeout, poll)
	require.Equal(t, ended, listed(ctx, t, c, "ExecutionStatus = 'Terminated'"))
	require.Zero(t, listed(ctx, t, c, "ExecutionStatus = 'Running'"))
}
