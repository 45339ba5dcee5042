package main

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/internal/testserver"
)

// TestMain makes the test's program a worker, or a command, when the bench starts it as one.
func TestMain(m *testing.M) {
	runCommand()
	if len(os.Args) > 1 && os.Args[1] == serveCommand {
		os.Exit(serveMain(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// TestARunOfTheBench does short workloads once, against a real server and with workers that are killed.
func TestARunOfTheBench(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server and workers, and kills some")
	}
	devserver, err := testserver.Binary(t.Output())
	require.NoError(t, err)
	var out, notes bytes.Buffer
	exit := execute([]string{
		"-devserver", devserver, "-rounds", "1", "-o", "json", "-calls", "-turns", "2", "-crowd", "3", "-talk", "3",
		"-run", `^((chain-20|ask|crowd)/(superstep sqlite (async (client|here|follow)|version)|floor)|` +
			`(turn-2|bytes-of-turns)/(superstep sqlite async (thread|runs)|floor)|kill/superstep sqlite async client)`,
	}, &out, io.MultiWriter(&notes, t.Output()))
	require.Zero(t, exit)
	var r report
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	require.Len(t, r.LeftOut, 2, "LangGraph in two languages")
	requireVersions(t, notes.String(), r.Versions)
	byName := map[string]row{}
	for _, one := range r.Rows {
		require.Empty(t, one.Failed)
		require.Greater(t, one.Milliseconds, 0.0)
		require.Greater(t, one.Cost.cpu(), 0.0, one.Way)
		byName[one.Workload+"/"+one.Way] = one
		if one.Way == "superstep sqlite version" {
			require.Nil(t, one.Cost.Commits, "it asks no server")
			continue
		}
		require.Greater(t, *one.Cost.Commits, 0.0, one.Way)
		require.NotNil(t, one.Cost.Stored, one.Way)
		require.Equal(t, one.Workload != "bytes-of-turns", one.Cost.Events > 0, one.Way)
		require.Equal(t, one.Workload != "bytes-of-turns", one.Cost.Bytes > 0, one.Way)
		requireCalls(t, one)
	}
	require.Len(t, slices.Collect(maps.Keys(byName)), 7+6+2+4+1+4)
	require.Less(t, byName["bytes-of-turns/floor sqlite local"].Cost.ClientCalls["UpdateWorkflowExecution"], 1.0, "of one turn: the first of three starts the run")
	floor := byName["chain-20/floor sqlite local"].Cost
	require.Equal(t, map[string]float64{"ExecuteMultiOperation": 1}, floor.ClientCalls, "one call to start and wait until it rests")
	require.InDelta(t, 1.0, floor.WorkerCalls["RespondWorkflowTaskCompleted"], 0)
	require.InDelta(t, 6.0, byName["turn-2/floor sqlite local"].Cost.Events, 1.5, "an update within the conversation's run")
	ours := byName["chain-20/superstep sqlite async client"]
	require.NotNil(t, ours.Floor)
	require.InDelta(t, 1.0, ours.Cost.ClientCalls["StartWorkflowExecution"], 0)
	here := byName["chain-20/superstep sqlite async here"]
	require.InDelta(t, 1.0, here.Cost.ClientCalls["StartWorkflowExecution"], 0)
	require.GreaterOrEqual(t, here.Cost.ClientCalls["RespondWorkflowTaskCompleted"], 1.0, "its worker has the same connection")
	for _, who := range []string{"client", "worker"} {
		require.Regexp(t, `(?m)^superstep sqlite async client, calls of the `+who+`: .*\w+ [1-9]`, notes.String())
	}
	// A node of a second whose worker is killed begins again.
	require.Greater(t, byName["kill/superstep sqlite async client"].Milliseconds, 1000.0)
}

// requireCalls: of a way of Superstep's the remote calls are counted, those of the caller and those of the worker. One way has both in one
// process, and what another command calls that follows a run is nobody's; of a run whose workers are killed none are counted.
func requireCalls(t *testing.T, r row) {
	t.Helper()
	mode, caller, ours := strings.Cut(strings.TrimPrefix(r.Way, "superstep sqlite "), " ")
	if !ours || !strings.HasPrefix(r.Way, "superstep ") || r.Workload == "kill" {
		return
	}
	require.Equal(t, "async", mode, r.Way)
	require.Equal(t, caller != "follow", len(r.Cost.ClientCalls) > 0, "%s of %s", r.Way, r.Workload)
	require.Equal(t, caller != "here", len(r.Cost.WorkerCalls) > 0, "%s of %s", r.Way, r.Workload)
	for method, n := range r.Cost.WorkerCalls {
		require.Positive(t, n, method)
	}
}

// requireVersions: what was measured is printed with the versions of all that took part, as in the report.
func requireVersions(t *testing.T, printed string, versions map[string]string) {
	t.Helper()
	for _, name := range []string{"Go", "Temporal server", "Temporal's Go SDK", "processors"} {
		require.NotEmpty(t, versions[name], name)
	}
	for name, version := range versions {
		require.Contains(t, printed, name+" "+version+"\n")
	}
}
