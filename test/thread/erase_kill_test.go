package thread_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/thread/storage"
)

// envEraser makes this test's binary an eraser of the server and the values that it names.
const envEraser = "SUPERSTEP_TEST_ERASER"

// eraseUntil erases a thread, and stands still for good with the first that it has removed of a kind.
func eraseUntil(t *testing.T, address, values, kind string) {
	c, err := client.Dial(client.Options{HostPort: address, Logger: rig.NoLog{}})
	require.NoError(t, err)
	defer c.Close()
	s, err := storage.Files(values, storage.Options{})
	require.NoError(t, err)
	eraser, err := superstep.NewClient(c, superstep.ClientConfig{TaskQueue: "erasing", Storage: s})
	require.NoError(t, err)
	_, err = eraser.Erase(t.Context(), thread.EraseRequest{Thread: "mine", Removed: func(r thread.Removal) {
		if r.Kind == kind {
			fmt.Println(removedFirst)
			select {}
		}
	}})
	require.NoError(t, err)
}

// removedFirst is what an eraser says then.
const removedFirst = "the first has gone"

// killedEraser is an eraser of its own process, which is killed with the first that it has removed of a kind.
func (e *erasing) killedEraser(kind string) {
	t := e.T
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), envEraser+"="+e.server.Address(), envEraser+"_VALUES="+filepath.Join(e.dir, "values"), envEraser+"_KIND="+kind)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said := ""
	for lines := bufio.NewScanner(out); said != removedFirst && lines.Scan(); {
		said = lines.Text()
	}
	require.Equal(t, removedFirst, said)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
}

// TestAnEraserThatIsKilled, with the values half removed, keeps everybody from the thread until somebody erases it again, and then nothing is
// left in any file. With its runs half removed it leaves the thread as it is, without them.
func TestAnEraserThatIsKilled(t *testing.T) {
	if address := os.Getenv(envEraser); address != "" {
		eraseUntil(t, address, os.Getenv(envEraser+"_VALUES"), os.Getenv(envEraser+"_KIND"))
		return
	}
	t.Parallel()
	e := newErasing(t)
	g := chatting()
	stop := e.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}})
	const marker = "marker-of-what-is-erased"
	th := g.Thread(e.Client, "mine")
	for i := range uint64(3) {
		turn(t, th, marker+said(200_000, i), marker)
	}
	e.killedEraser(thread.RemovedRun)
	e.killedEraser(thread.RemovedValue)
	_, err := th.Invoke(t.Context(), rig.Wrote("another"))
	require.ErrorIs(t, err, thread.ErrErasing)
	e.killedEraser(thread.RemovedValue)
	proof, err := e.Erase(t.Context(), thread.EraseRequest{Thread: "mine"})
	require.NoError(t, err)
	assert.NotZero(t, proof.Values)
	assert.NotZero(t, proof.Checked)
	left, err := e.values.List(t.Context(), storage.SpaceOf("default", "mine"))
	require.NoError(t, err)
	assert.Empty(t, left)
	_, err = e.Show(t.Context(), "mine")
	require.ErrorIs(t, err, thread.ErrNotFound)
	turn(t, th, "begins anew", "and is answered")
	stop()
	require.NoError(t, e.server.Stop())
	require.NoError(t, e.server.Vacuum())
	assert.Empty(t, filesWith(t, e.dir, marker))
}
