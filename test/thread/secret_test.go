package thread_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/thread/secret"
	"superstep.dev/thread/storage"
)

// keyFile is a key file of a test.
type keyFile struct {
	t    *testing.T
	path string
	ring secret.Ring
}

func newKeyFile(t *testing.T, ids ...string) *keyFile {
	t.Helper()
	f := &keyFile{t: t, path: filepath.Join(t.TempDir(), "keys")}
	for _, id := range ids {
		f.rotate(id)
	}
	return f
}

// rotate adds a key that writes at once: nobody has read it yet.
func (f *keyFile) rotate(id string) {
	f.t.Helper()
	var err error
	now := time.Now()
	f.ring, _, err = f.ring.Rotate(id, now, now)
	require.NoError(f.t, err)
	f.write(f.ring.Text())
}

func (f *keyFile) write(text []byte) {
	f.t.Helper()
	require.NoError(f.t, os.WriteFile(f.path+".new", text, 0o600))
	require.NoError(f.t, os.Rename(f.path+".new", f.path))
}

// keys are another process's keys of the file.
func (f *keyFile) keys() *secret.Keys {
	f.t.Helper()
	keys, err := secret.File(f.path, secret.Options{})
	require.NoError(f.t, err)
	return keys
}

// strict refuses what is not sealed: nothing may be stored so.
type strict struct{ converter.PayloadCodec }

func (s strict) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	for _, p := range payloads {
		if string(p.GetMetadata()[converter.MetadataEncoding]) != secret.Encoding {
			return nil, errors.New("a payload is not sealed")
		}
	}
	return s.PayloadCodec.Decode(payloads)
}

// TestWithKeysNothingIsReadable: not in the server's database, nor in the storage, nor in any log, before and after a rotation.
func TestWithKeysNothingIsReadable(t *testing.T) {
	t.Parallel()
	v := &vault{t: t, dir: t.TempDir(), markers: map[string]string{}, hears: true}
	v.server = testserver.Start(t, testserver.Options{DB: filepath.Join(v.dir, "server.db")})
	file := newKeyFile(t, "k-1")
	values := func() *storage.Storage { // most that the runs have lies there
		s, err := storage.Files(filepath.Join(v.dir, "values"), storage.Options{Threshold: 300})
		require.NoError(t, err)
		return s
	}
	converters := func() converter.DataConverter {
		return converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), strict{file.keys().Codec()})
	}
	v.serve("vault", superstep.WorkerConfig{DataConverter: file.keys().Converter(nil), Storage: values()})
	c, err := superstep.NewClient(v.dial(client.Options{}), superstep.ClientConfig{TaskQueue: "vault", DataConverter: converters(), Storage: values()})
	require.NoError(t, err)
	threads := v.live(c, "a")
	file.rotate("k-2")
	threads = append(threads, v.live(c, "b")...)
	v.jobs(c)
	require.GreaterOrEqual(t, len(threads), 20)
	require.Empty(t, v.found())
	lying, err := filepath.Glob(filepath.Join(v.dir, "values", "*", "*"))
	require.NoError(t, err)
	require.Greater(t, len(lying), 50)

	v.says = "this program was given no keys"
	v.withoutTheKey(threads, superstep.ClientConfig{Storage: values()})
	v.says = "not among the keys of"
	v.withoutTheKey(threads, superstep.ClientConfig{Storage: values(), DataConverter: newKeyFile(t, "k-9").keys().Converter(nil)})
	v.says = "another key than the one that encrypted it"
	v.withoutTheKey(threads, superstep.ClientConfig{Storage: values(), DataConverter: newKeyFile(t, "k-1", "k-2").keys().Converter(nil)})
	require.NoError(t, v.server.Stop()) // what it had in memory is in its files
	require.Empty(t, v.found())
}

// purse is the state of the rotation's graph.
type purse struct {
	Said superstep.List[string] `json:"said"`
}

// countsUp has nodes that write in turn, and one that asks in the middle.
func countsUp() *superstep.Graph[purse] {
	g := superstep.NewStateGraph[purse]("counting")
	last := superstep.Start
	for i := range 12 {
		name := fmt.Sprintf("n%02d", i)
		g.AddNode(name, func(ctx context.Context, s purse) (purse, error) {
			if i == 6 {
				answer, err := superstep.Interrupt[string](ctx, "go on?")
				s.Said.Append(answer)
				return s, err
			}
			kept, err := superstep.Task(ctx, "kept", func(context.Context) (string, error) { return name, nil })
			s.Said.Append(kept + strings.Repeat("x", 2_000))
			return s, err
		})
		g.AddEdge(last, name)
		last = name
	}
	return g.MustCompile()
}

// countsRight holds a finished thread to what its nodes wrote, each once.
func countsRight(t *testing.T, c *superstep.Client, id string) {
	t.Helper()
	state, err := c.State(t.Context(), thread.StateRequest{Thread: id})
	require.NoError(t, err, id)
	var said []string
	require.NoError(t, json.Unmarshal(state.Values["said"], &said))
	require.Len(t, said, 12, id)
	for i, text := range said {
		want := fmt.Sprintf("n%02d", i) + strings.Repeat("x", 2_000)
		if i == 6 {
			want = "yes"
		}
		require.Equal(t, want, text, id)
	}
}

// secretWorker runs a worker with keys of its own until stopped, and returns what it logs.
func secretWorker(t *testing.T, s *rig.Server, queue string, o client.Options) (stop func(), logs func() string) {
	t.Helper()
	var mu sync.Mutex
	var text bytes.Buffer
	to := zapcore.AddSync(writer(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return text.Write(p)
	}))
	o = superstep.Encoded(o)
	stop = rig.RunWorker(t, s.Temporal, superstep.WorkerConfig{Graphs: []superstep.Runnable{countsUp()}, TaskQueue: queue, DataConverter: o.DataConverter,
		Logger: zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), to, zapcore.DebugLevel))})
	return stop, func() string {
		mu.Lock()
		defer mu.Unlock()
		return text.String()
	}
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// TestRotationUnderLoadLosesNothing: new keys write at once while runs go in every mode over two workers, which learn of them only
// by what they cannot read.
func TestRotationUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	s := rig.NewServer(t)
	queue := testserver.Queue(t)
	file := newKeyFile(t, "k-0")
	for range 2 {
		stop, _ := secretWorker(t, s, queue, client.Options{DataConverter: file.keys().Converter(nil)})
		t.Cleanup(stop)
	}
	c, err := superstep.NewClient(s.Temporal, superstep.ClientConfig{TaskQueue: queue, DataConverter: file.keys().Converter(nil)})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	modes := []thread.StartRequest{{}, {Fused: true}, {Durability: superstep.DurabilityAsync}, {Durability: superstep.DurabilityExit}}
	stages, turned := make(chan struct{}, 48), make(chan int)
	go func() { // a new key with every fourth stage that a run has reached, while the others are on their way
		n := 0
		defer func() { turned <- n }()
		for reached := 1; ; reached++ {
			if _, ok := <-stages; !ok {
				return
			}
			if reached%4 == 0 {
				n++
				file.rotate(fmt.Sprintf("k-%d", n))
			}
		}
	}()
	var all sync.WaitGroup
	var ids []string
	for i := range 16 {
		id := fmt.Sprintf("%s-%d", queue, i)
		ids = append(ids, id)
		all.Go(func() {
			start := modes[i%len(modes)]
			start.Graph, start.Thread, start.Input = "counting", id, json.RawMessage(`{}`)
			_, err := c.Start(ctx, start)
			stages <- struct{}{}
			if err == nil {
				_, err = c.Wait(ctx, id)
			}
			stages <- struct{}{}
			if err == nil {
				_, err = c.Resume(ctx, thread.ResumeRequest{Thread: id, Value: json.RawMessage(`"yes"`)})
			}
			stages <- struct{}{}
			view, waited := c.Wait(ctx, id)
			if err = errors.Join(err, waited); err != nil || view.Status != thread.StatusFinished {
				t.Errorf("%s: %v %v", id, view.Status, err)
			}
		})
	}
	all.Wait()
	close(stages)
	require.Equal(t, 3*len(ids)/4, <-turned, "changes of the key file")
	fresh, err := superstep.NewClient(s.Temporal, superstep.ClientConfig{TaskQueue: queue, DataConverter: file.keys().Converter(nil)})
	require.NoError(t, err)
	for _, id := range ids {
		countsRight(t, fresh, id)
	}
}

// TestGarbageWhileRunsWait: a key file that becomes garbage, or goes, changes nothing for those who have read it.
func TestGarbageWhileRunsWait(t *testing.T) {
	t.Parallel()
	s := rig.NewServer(t)
	queue := testserver.Queue(t)
	file := newKeyFile(t, "k-0", "k-1")
	stop, _ := secretWorker(t, s, queue, client.Options{DataConverter: file.keys().Converter(nil)})
	t.Cleanup(stop)
	c, err := superstep.NewClient(s.Temporal, superstep.ClientConfig{TaskQueue: queue, DataConverter: file.keys().Converter(nil)})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for i, spoil := range []func() error{
		func() error { return os.WriteFile(file.path, []byte("garbage"), 0o600) },
		func() error { return os.WriteFile(file.path, nil, 0o600) },
		func() error { return os.Remove(file.path) },
	} {
		file.write(file.ring.Text())
		id := fmt.Sprintf("%s-%d", queue, i)
		_, err := c.Start(ctx, thread.StartRequest{Graph: "counting", Thread: id, Input: json.RawMessage(`{}`)})
		require.NoError(t, err)
		view, err := c.Wait(ctx, id)
		require.NoError(t, err)
		require.Equal(t, thread.StatusWaiting, view.Status)
		require.NoError(t, spoil())
		_, err = secret.File(file.path, secret.Options{})
		require.ErrorIs(t, err, secret.ErrBadKeys, "who begins now is refused")
		_, err = c.Resume(ctx, thread.ResumeRequest{Thread: id, Value: json.RawMessage(`"yes"`)})
		require.NoError(t, err)
		view, err = c.Wait(ctx, id)
		require.NoError(t, err)
		require.Equal(t, thread.StatusFinished, view.Status)
		countsRight(t, c, id)
	}
}

// TestAWorkerWithoutTheKeyEndsNoRun: with no keys, with others, and with another key under the same id. It says so in its log and where
// the run is shown, and the run goes on once a worker has the key.
func TestAWorkerWithoutTheKeyEndsNoRun(t *testing.T) {
	t.Parallel()
	s := rig.NewServer(t)
	file := newKeyFile(t, "k-1")
	for name, other := range map[string]func(log func(error)) client.Options{
		"none":    func(func(error)) client.Options { return client.Options{} },
		"unknown": func(log func(error)) client.Options { return lockedOut(t, newKeyFile(t, "k-2"), log) },
		"wrong":   func(log func(error)) client.Options { return lockedOut(t, newKeyFile(t, "k-1"), log) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := testserver.Queue(t)
			c, err := superstep.NewClient(s.Temporal, superstep.ClientConfig{TaskQueue: queue, DataConverter: file.keys().Converter(nil)})
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			stop, _ := secretWorker(t, s, queue, client.Options{DataConverter: file.keys().Converter(nil)})
			_, err = c.Start(ctx, thread.StartRequest{Graph: "counting", Thread: queue, Input: json.RawMessage(`{}`)})
			require.NoError(t, err)
			view, err := c.Wait(ctx, queue)
			require.NoError(t, err)
			require.Equal(t, thread.StatusWaiting, view.Status)
			stop()

			var mu sync.Mutex
			var told []string
			stop, logs := secretWorker(t, s, queue, other(func(err error) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, fmt.Sprint(err))
			}))
			_, err = c.Resume(ctx, thread.ResumeRequest{Thread: queue, Question: view.Questions[0].ID, Value: json.RawMessage(`"yes"`), Signal: true})
			require.NoError(t, err)
			says := map[string]string{"none": "was given no keys", "unknown": "not among the keys of", "wrong": "another key than the one"}[name]
			require.Eventually(t, func() bool {
				mu.Lock()
				defer mu.Unlock()
				return strings.Contains(logs()+strings.Join(told, "\n"), says)
			}, 2*time.Minute, 50*time.Millisecond, "the worker says nothing of it")
			mu.Lock()
			require.LessOrEqual(t, len(told), 1, "once")
			mu.Unlock()
			described, err := s.Temporal.DescribeWorkflowExecution(ctx, queue, "")
			require.NoError(t, err)
			require.Equal(t, "Running", described.GetWorkflowExecutionInfo().GetStatus().String())
			stop()

			stop, _ = secretWorker(t, s, queue, client.Options{DataConverter: file.keys().Converter(nil)})
			t.Cleanup(stop)
			view, err = c.Wait(ctx, queue)
			require.NoError(t, err)
			require.Equal(t, thread.StatusFinished, view.Status)
			countsRight(t, c, queue)
		})
	}
}

// lockedOut are the options of who has the keys of another file.
func lockedOut(t *testing.T, file *keyFile, log func(error)) client.Options {
	t.Helper()
	keys, err := secret.File(file.path, secret.Options{Log: log})
	require.NoError(t, err)
	return client.Options{DataConverter: keys.Converter(nil)}
}
