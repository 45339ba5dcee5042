package main_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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

// Runs are on the disk when they are acknowledged. Events that are followed by their run do not wait for that themselves, nor do
// records for lists.
func TestPostgresWaitsForWhatIsAcknowledged(t *testing.T) {
	t.Parallel()
	cluster, name := postgres(t), newDatabase()
	s := startOn(t, []string{"--postgres", cluster.dsn("me", name)})
	for _, table := range []string{"history_node", "history_tree", "executions", "current_executions"} {
		require.NoError(t, cluster.exec(name, noteCommits+table+" FOR EACH ROW EXECUTE FUNCTION note_commit()"))
	}
	require.NoError(t, cluster.exec(name+"_visibility", noteCommits+"executions_visibility FOR EACH ROW EXECUTE FUNCTION note_commit()"))
	c, ctx := dial(t, s.address), within(t, time.Minute)
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "run-1", TaskQueue: "nobody"}, "nothing")
	require.NoError(t, err)
	require.NoError(t, c.SignalWorkflow(ctx, "run-1", "", "say", "hello"))
	require.NoError(t, c.TerminateWorkflow(ctx, "run-1", "", "enough"))

	const run = "WHERE of IN ('executions', 'current_executions', 'history_tree')"
	require.Positive(t, cluster.count(t, name, "commits "+run))
	require.Zero(t, cluster.count(t, name, "commits "+run+" AND waits <> 'on'"))
	require.Equal(t, 1, cluster.count(t, name, "commits WHERE of = 'history_node' AND waits = 'on'"), "the first events, in the transaction that makes their branch")
	require.Equal(t, 2, cluster.count(t, name, "commits WHERE of = 'history_node' AND waits = 'off'"))
	require.Eventually(t, func() bool {
		return cluster.count(t, name+"_visibility", "commits WHERE waits = 'off'") > 0
	}, startTimeout, poll)
	require.Zero(t, cluster.count(t, name+"_visibility", "commits WHERE waits <> 'off'"))
	require.Zero(t, s.stop(t))
}
