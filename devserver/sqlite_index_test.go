package main_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

// Lists find runs by Superstep's attributes in an index, and by any other attribute
// all the same.
func TestListsAreLookedUp(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "runs.db")
	s := start(t, db, "--headless")
	c, ctx := dial(t, s.address), within(t, startTimeout)
	_, err := c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: "default", SearchAttributes: map[string]enumspb.IndexedValueType{"Team": enumspb.INDEXED_VALUE_TYPE_KEYWORD},
	})
	require.NoError(t, err)
	team, graph := temporal.NewSearchAttributeKeyKeyword("Team"), temporal.NewSearchAttributeKeyKeyword("SuperstepGraph")
	require.Eventually(t, func() bool {
		_, err = c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "run-1", TaskQueue: "nobody",
			TypedSearchAttributes: temporal.NewSearchAttributes(team.ValueSet("blue"), graph.ValueSet("refund"))}, "nothing")
		return err == nil // a new attribute takes a moment to be known
	}, startTimeout, 10*time.Millisecond)
	for _, query := range []string{`Team = "blue"`, `SuperstepGraph = "refund"`} {
		require.Eventually(t, func() bool {
			listed, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query})
			return err == nil && len(listed.GetExecutions()) == 1 && listed.GetExecutions()[0].GetExecution().GetWorkflowId() == "run-1"
		}, startTimeout, 10*time.Millisecond, query)
	}
	described, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: "default"})
	require.NoError(t, err)
	require.Zero(t, s.stop(t))

	columns := []string{"workflow_id", "workflow_type_name", "status", "parent_workflow_id", "root_workflow_id", "TemporalScheduledById", "TemporalNamespaceDivision"}
	for column, name := range described.GetConfig().GetCustomSearchAttributeAliases() {
		if strings.HasPrefix(name, "Superstep") && !strings.HasPrefix(column, "KeywordList") { // lists of words have an index of another kind
			columns = append(columns, column)
		}
	}
	require.Len(t, columns, 7+6)
	require.ElementsMatch(t, columns, indexed(t, db))
}

// indexed are the columns of the visibility store that have an index of their own.
func indexed(t *testing.T, db string) (columns []string) {
	t.Helper()
	rows, err := opened(t, db).Query(`SELECT c.name FROM pragma_index_list('executions_visibility') i JOIN pragma_index_xinfo(i.name) c ON c.seqno = 1
		WHERE i.origin = 'c' AND c.name IS NOT NULL`)
	require.NoError(t, err)
	for rows.Next() {
		var column string
		require.NoError(t, rows.Scan(&column))
		columns = append(columns, column)
	}
	require.NoError(t, rows.Err())
	return columns
}
