package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/store"
	"superstep.dev/store/postgres"
	"superstep.dev/store/sqlite"
	"superstep.dev/test/rig"
)

// envChild has what this program is to do as a process of a test's, as JSON.
const envChild = "SUPERSTEP_STORE_CHILD"

// child is a process of a test's.
type child struct {
	// Place is the store's.
	Place string
	// Address and Queue are a worker's. Without them the process writes items.
	Address, Queue string
	// Hang is where the worker's first write stands still: see the constants. It goes on once the file Go is there.
	Hang, Marker, Go string
	// Writer tells writers apart; each of them writes Writes times.
	Writer string
	Writes int
}

const (
	hangBefore    = "before it is sent"
	hangCommitted = "when the database has it"
	hangPut       = "when Put has returned"

	// arrived is behind the marker's name in that of a file that is there once a late write has reached the database.
	arrived = ".arrived"
)

func TestMain(m *testing.M) {
	spec := os.Getenv(envChild)
	if spec == "" {
		os.Exit(m.Run())
	}
	var c child
	err := json.Unmarshal([]byte(spec), &c)
	if err == nil {
		err = c.run(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// openAt opens the store of a place.
func openAt(ctx context.Context, place string) (*store.Store, error) {
	if strings.HasPrefix(place, "postgres://") {
		return postgres.Open(ctx, place, store.Options{})
	}
	return sqlite.Open(place, store.Options{})
}

func (c child) run(ctx context.Context) error {
	s, err := openAt(ctx, c.Place)
	if err != nil {
		return err
	}
	if c.Queue == "" {
		return c.write(ctx, s)
	}
	if c.Hang == hangBefore || c.Hang == hangCommitted {
		s = s.Around(func(b store.Backend) store.Backend { return &hanging{Backend: b, child: c} })
	}
	temporal, err := client.DialContext(ctx, client.Options{HostPort: c.Address, Logger: rig.NoLog{}})
	if err != nil {
		return err
	}
	var graphs []superstep.Runnable
	for name := range rig.Modes {
		graphs = append(graphs, counting(name, c))
	}
	w, err := superstep.NewWorker(temporal, superstep.WorkerConfig{Graphs: graphs, TaskQueue: c.Queue, Store: s})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// write writes items until it is done, and says of each that it is written. A file that others have locked for too long was not written
// to: it tries again, as a caller does.
func (c child) write(ctx context.Context, s *store.Store) error {
	put := func(namespace []string, key string, value map[string]any) error {
		for {
			if err := s.Put(ctx, namespace, key, value); !errors.Is(err, store.ErrUnavailable) {
				return err
			}
		}
	}
	for i := range c.Writes {
		if err := put([]string{"shared"}, "item", map[string]any{"by": c.Writer, "n": i}); err != nil {
			return err
		}
		if err := put([]string{"own", c.Writer}, fmt.Sprint(i), map[string]any{"n": i}); err != nil {
			return err
		}
		fmt.Println(i)
	}
	os.Exit(0)
	return nil
}

// standStill says that it is there, and waits until it may go on.
func (c child) standStill() {
	_ = os.WriteFile(c.Marker, nil, 0o600)
	for {
		if _, err := os.Stat(c.Go); c.Go != "" && err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// hanging is a backend whose first write stands still.
type hanging struct {
	store.Backend
	child child
}

func (h *hanging) Write(ctx context.Context, w store.Write) (store.Receipt, error) {
	if h.child.Hang == hangBefore {
		h.child.standStill()
		receipt, err := h.Backend.Write(context.WithoutCancel(ctx), w) // as bytes that were on their way already
		_ = os.WriteFile(h.child.Marker+arrived, nil, 0o600)
		return receipt, err
	}
	receipt, err := h.Backend.Write(ctx, w)
	h.child.standStill()
	return receipt, err
}

// state is that of the graph that counts.
type state struct {
	Key superstep.Value[string] `json:"key"`
	Log superstep.List[string]  `json:"log"`
}

type count struct {
	N int `json:"n"`
}

// counting is a graph that adds one to an item of the store, which it reads first.
func counting(mode string, c child) *superstep.Graph[state] {
	g := superstep.NewStateGraph[state]("counting-" + mode)
	g.AddNode("count", func(ctx context.Context, s state) (state, error) {
		memory, err := superstep.StoreFrom(ctx)
		if err != nil {
			return s, err
		}
		var n count
		item, err := memory.Get(ctx, []string{"counts"}, s.Key.Get())
		if err == nil {
			err = item.Decode(&n)
		} else if errors.Is(err, store.ErrNotFound) {
			err = nil
		}
		if err == nil {
			err = memory.Put(ctx, []string{"counts"}, s.Key.Get(), count{n.N + 1})
		}
		if err == nil && c.Hang == hangPut {
			c.standStill()
		}
		s.Log.Append("counted")
		return s, err
	})
	g.AddNode("after", func(_ context.Context, s state) (state, error) {
		s.Log.Append("after")
		return s, nil
	})
	g.AddEdge(superstep.Start, "count")
	g.AddEdge("count", "after")
	return g.MustCompile(rig.Modes[mode]...)
}

// process is a child that runs.
type process struct {
	*exec.Cmd
	output *strings.Builder
	ended  chan struct{}
	marker string
}

// start starts a child, and kills it at the test's end.
func start(t *testing.T, c child) *process {
	t.Helper()
	spec, err := json.Marshal(c)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	p := &process{Cmd: exec.Command(self), output: &strings.Builder{}, ended: make(chan struct{})}
	p.Env = append(os.Environ(), envChild+"="+string(spec))
	p.Stdout, p.Stderr = p.output, p.output
	require.NoError(t, p.Start())
	go func() {
		_ = p.Wait() // how it ended is in ProcessState
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended
		<-p.ended
	})
	return p
}

// kill ends the process as a crash does.
func (p *process) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.Process.Kill())
	<-p.ended
}

// awaitFile waits for a file.
func (p *process) awaitFile(t *testing.T, path string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := os.Stat(path)
		select {
		case <-p.ended:
			t.Fatalf("the process has ended: %s", p.output)
		default:
		}
		return !errors.Is(err, fs.ErrNotExist)
	}, testPatience, 5*time.Millisecond)
}

func fileIn(t *testing.T, name string) string { return filepath.Join(t.TempDir(), name) }
