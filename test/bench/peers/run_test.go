package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
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
	var out bytes.Buffer
	exit := execute([]string{
		"-devserver", devserver, "-rounds", "1", "-o", "json", "-turns", "2", "-crowd", "3", "-talk", "3",
		"-run", `^((chain-20|ask|crowd)/(superstep sqlite (async (client|here|follow)|version)|floor)|` +
			`(turn-2|bytes-of-turns)/(superstep sqlite async (thread|runs)|floor)|kill/superstep sqlite async client)`,
	}, &out, t.Output())
	require.Zero(t, exit)
	var r report
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	require.Len(t, r.LeftOut, 2, "LangGraph in two languages")
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
	}
	require.Len(t, slices.Collect(maps.Keys(byName)), 7+6+2+4+1+4)
	require.Less(t, byName["bytes-of-turns/floor sqlite local"].Cost.ClientCalls["UpdateWorkflowExecution"], 1.0, "of one turn: the first of three starts the run")
	floor := byName["chain-20/floor sqlite local"].Cost
	require.Equal(t, map[string]float64{"ExecuteMultiOperation": 1}, floor.ClientCalls, "one call to start and wait until it rests")
	require.InDelta(t, 1.0, floor.WorkerCalls["RespondWorkflowTaskCompleted"], 0)
	require.InDelta(t, 6.0, byName["turn-2/floor sqlite local"].Cost.Events, 1.5, "an update within the conversation's run")
	require.NotNil(t, byName["chain-20/superstep sqlite async client"].Floor)
	// A node of a second whose worker is killed begins again.
	require.Greater(t, byName["kill/superstep sqlite async client"].Milliseconds, 1000.0)
}
