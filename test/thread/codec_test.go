package thread_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
	"superstep.dev/approval"
	"superstep.dev/internal/sdklog"
	"superstep.dev/internal/testserver"
	"superstep.dev/job"
	"superstep.dev/job/leader"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// sealing is a codec that encrypts.
type sealing struct{ cipher.AEAD }

// sealed returns a data converter with a key of its own.
func sealed(t *testing.T) converter.DataConverter {
	t.Helper()
	block, err := aes.NewCipher([]byte(rand.Text() + rand.Text())[:32])
	require.NoError(t, err)
	aead, err := cipher.NewGCM(block)
	require.NoError(t, err)
	return converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), sealing{aead})
}

func (s sealing) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		plain, err := p.Marshal()
		if err != nil {
			return nil, err
		}
		nonce := make([]byte, s.NonceSize())
		rand.Read(nonce)
		out[i] = &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("binary/sealed")}, Data: s.Seal(nonce, nonce, plain, nil)}
	}
	return out, nil
}

// Decode refuses what is not sealed: nothing may be stored so.
func (s sealing) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		if string(p.GetMetadata()["encoding"]) != "binary/sealed" || len(p.GetData()) < s.NonceSize() {
			return nil, errors.New("a payload is not sealed")
		}
		plain, err := s.Open(nil, p.GetData()[:s.NonceSize()], p.GetData()[s.NonceSize():], nil)
		if err != nil {
			return nil, err
		}
		out[i] = &commonpb.Payload{}
		if err := out[i].Unmarshal(plain); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// vault is the world of the test: a server whose database is read, logs, and texts that may be in neither.
type vault struct {
	t       *testing.T
	dir     string
	server  *testserver.Server
	logs    bytes.Buffer
	guard   sync.Mutex
	markers map[string]string
	says    string // what who lacks the key is told
	hears   bool   // runs take what is not encrypted
}

// Write implements io.Writer: everybody logs here.
func (v *vault) Write(p []byte) (int, error) {
	v.guard.Lock()
	defer v.guard.Unlock()
	return v.logs.Write(p)
}

func (v *vault) logger() *zap.Logger {
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(v), zapcore.DebugLevel))
}

// mark is a text that nobody may read: the same for the same name.
func (v *vault) mark(name string) string {
	v.guard.Lock()
	defer v.guard.Unlock()
	if v.markers[name] == "" {
		v.markers[name] = "marker-" + name + "-" + rand.Text()
	}
	return v.markers[name]
}

// found are the names of the markers that can be read, and where.
func (v *vault) found() (out []string) {
	v.t.Helper()
	texts := map[string][]byte{"server's log": []byte(v.server.Output())}
	require.NoError(v.t, filepath.WalkDir(v.dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && e.IsDir() {
			return nil // what was being written
		}
		if err == nil {
			texts[path], err = os.ReadFile(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}))
	v.guard.Lock()
	defer v.guard.Unlock()
	texts["logs"] = bytes.Clone(v.logs.Bytes())
	for place, text := range texts {
		for name, marker := range v.markers {
			if readable(text, marker) {
				out = append(out, name+" in "+place)
			}
		}
	}
	return out
}

// readable reports whether a marker is in a text, as it is or in base64.
func readable(text []byte, marker string) bool {
	if bytes.Contains(text, []byte(marker)) {
		return true
	}
	for skip := range 3 { // three letters of base64 stand for two to four places of the text
		inner := base64.RawStdEncoding.EncodeToString([]byte(marker[skip:]))
		if bytes.Contains(text, []byte(inner[:len(inner)-2])) {
			return true
		}
	}
	return false
}

// deposit is the state of the test's graph: Do says what its node does.
type deposit struct {
	Do   superstep.Value[string] `json:"do"`
	Said superstep.List[string]  `json:"said"`
}

// graph has one node for everything that could tell a secret.
func (v *vault) graph() *superstep.Graph[deposit] {
	pay := &superstep.Effect[string, string]{Name: "pay", Target: superstep.TargetKeyed,
		Do: func(_ context.Context, _ string, p string) (string, error) { return v.mark("receipt"), nil },
		Lookup: func(context.Context, string, string) (superstep.Finding[string], error) {
			return superstep.Finding[string]{Status: superstep.FindingNotFound}, nil
		},
		Compensate: func(context.Context, string, string, string) error { return nil },
	}
	g := superstep.NewStateGraph[deposit]("vault")
	g.AddEffect(pay)
	g.AddNode("begin", func(ctx context.Context, s deposit) (deposit, error) {
		s.Said.Append(v.mark("state"))
		_, err := superstep.Task(ctx, "remember", func(context.Context) (string, error) { return v.mark("memo"), nil })
		return s, errors.Join(err, superstep.Emit(ctx, v.mark("stream")))
	})
	g.AddNode("act", func(ctx context.Context, s deposit) (deposit, error) {
		switch do := s.Do.Get(); do {
		case "fail":
			return s, superstep.Permanent(errors.New(v.mark("error")))
		case "retry":
			if superstep.Info(ctx).Attempt == 1 {
				return s, errors.New(v.mark("failed attempt"))
			}
			return s, superstep.Permanent(fmt.Errorf("at last: %s", v.mark("error")))
		case "panic":
			panic(v.mark("panic"))
		case "pay":
			if _, err := pay.Call(ctx, v.mark("params")); err != nil {
				return s, err
			}
			_, err := superstep.Interrupt[string](ctx, v.mark("question"))
			return s, err
		case "approve":
			_, err := superstep.Approve(ctx, approval.Action{Tool: "wire", Summary: v.mark("summary"), Params: json.RawMessage(`"` + v.mark("action") + `"`)})
			return s, err
		case "hang":
			<-ctx.Done()
			return s, errors.New(v.mark("cancelled"))
		case "ask":
			answer, err := superstep.Interrupt[string](ctx, v.mark("question"))
			s.Said.Append(answer)
			return s, err
		}
		return s, nil
	}, superstep.WithRetry(superstep.RetryPolicy{MaxAttempts: 2, InitialInterval: 10 * time.Millisecond}))
	g.AddEdge(superstep.Start, "begin")
	g.AddEdge("begin", "act")
	return g.MustCompile()
}

func (v *vault) leader() *leader.Leader {
	expert := leader.NewExpert("clerk", "Fails once.", func(ctx context.Context, a job.Assignment) (job.WorkflowMessage, error) {
		if a.Goal == v.mark("goal that fails") {
			return job.WorkflowMessage{}, superstep.Permanent(errors.New(v.mark("error of an expert")))
		}
		return job.WorkflowMessage{Status: job.Success, Output: v.mark("output")}, nil
	})
	return rig.LeaderOf(v.t, rig.Planner(func(_ context.Context, req job.PlanRequest) (job.Draft, error) {
		if req.Job.Goal == v.mark("goal without a plan") {
			return job.Draft{}, superstep.Permanent(errors.New(v.mark("error of a planner")))
		}
		return job.Draft{SubJobs: []job.DraftSubJob{{ID: "1", Goal: req.Job.Goal, Expert: "clerk"}}}, nil
	}), expert)
}

// TestWithACodecNothingIsReadable: not in the server's database, nor in any log. With the key everything is, as ever.
func TestWithACodecNothingIsReadable(t *testing.T) {
	t.Parallel()
	v := &vault{t: t, dir: t.TempDir(), markers: map[string]string{}}
	v.server = testserver.Start(t, testserver.Options{DB: filepath.Join(v.dir, "server.db")})
	key := sealed(t)
	v.serve("vault", superstep.WorkerConfig{DataConverter: key})

	// A client of a connection that knows nothing of the key, and one that was dialed with it.
	lazy, err := superstep.NewClient(v.dial(client.Options{}), superstep.ClientConfig{TaskQueue: "vault", DataConverter: key})
	require.NoError(t, err)
	options := superstep.Encoded(client.Options{DataConverter: key, Logger: sdklog.New(v.logger())})
	dialed, err := superstep.NewClient(v.dial(options), superstep.ClientConfig{TaskQueue: "vault", DataConverter: key,
		FailureConverter: options.FailureConverter, Identity: "ann"})
	require.NoError(t, err)
	v.says = "Give the program the data converter that the run's worker has"
	threads := v.live(lazy, "a")
	threads = append(threads, v.live(dialed, "b")...)
	v.jobs(dialed)
	require.GreaterOrEqual(t, len(threads), 20)
	require.GreaterOrEqual(t, len(v.markers), 12)
	require.Empty(t, v.found())

	v.withoutTheKey(threads, superstep.ClientConfig{}, superstep.ClientConfig{DataConverter: sealed(t)})
	require.NoError(t, v.server.Stop()) // what it had in memory is in its files
	require.Empty(t, v.found())
	require.NoError(t, v.server.Restart())

	// The search finds what is there to be found.
	v.serve("open", superstep.WorkerConfig{})
	open, err := superstep.NewClient(v.dial(client.Options{}), superstep.ClientConfig{TaskQueue: "open"})
	require.NoError(t, err)
	v.run(open, "in-the-open", "fail", thread.StartRequest{}, thread.StatusFailed)
	found := v.found()
	for _, name := range []string{"error", "state", "input", "memo"} {
		require.Contains(t, fmt.Sprint(found), name)
	}
}

func (v *vault) dial(o client.Options) client.Client {
	v.t.Helper()
	o.HostPort = v.server.Address()
	if o.Logger == nil {
		o.Logger = rig.NoLog{}
	}
	c, err := client.DialContext(v.t.Context(), o)
	require.NoError(v.t, err)
	v.t.Cleanup(c.Close)
	return c
}

// serve runs a worker until the test ends, and returns once the server knows it.
func (v *vault) serve(queue string, cfg superstep.WorkerConfig) {
	v.t.Helper()
	ready, ended := make(chan struct{}), make(chan error, 1)
	cfg.Graphs, cfg.Leaders, cfg.TaskQueue = []superstep.Runnable{v.graph()}, []superstep.Leader{v.leader()}, queue
	cfg.Logger, cfg.OnReady, cfg.LostAfter = v.logger(), func() { close(ready) }, rig.Steady
	w, err := superstep.NewWorker(v.dial(client.Options{}), cfg)
	require.NoError(v.t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(v.t.Context()))
	go func() { ended <- w.Run(ctx) }()
	v.t.Cleanup(func() {
		stop()
		require.NoError(v.t, <-ended)
	})
	select {
	case <-ready:
	case err := <-ended:
		require.FailNow(v.t, "the worker ended", "%v", err)
	}
}

// run starts a thread and waits until it stands.
func (v *vault) run(c *superstep.Client, threadID, do string, r thread.StartRequest, want thread.Status) thread.View {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), 4*time.Minute)
	defer cancel()
	r.Graph, r.Thread = "vault", threadID
	r.Input = json.RawMessage(fmt.Sprintf(`{"do": %q, "said": [%q]}`, do, v.mark("input")))
	r.Context = json.RawMessage(fmt.Sprintf("%q", v.mark("context")))
	_, err := c.Start(ctx, r)
	require.NoError(v.t, err, threadID)
	if do == "hang" {
		return thread.View{}
	}
	view, err := c.Wait(ctx, threadID)
	require.NoError(v.t, err, threadID)
	require.Equal(v.t, want, view.Status, threadID)
	return view
}

// live lives through what a client does, in every mode, and reads what it needs the key for.
func (v *vault) live(c *superstep.Client, prefix string) (threads []string) {
	ctx := v.t.Context()
	modes := map[string]thread.StartRequest{"sync": {}, "fused": {Fused: true},
		"async": {Durability: superstep.DurabilityAsync}, "exit": {Durability: superstep.DurabilityExit}}
	for name, mode := range modes {
		id := func(do string) string {
			threads = append(threads, prefix+"-"+name+"-"+do)
			return prefix + "-" + name + "-" + do
		}
		v.run(c, id("finish"), "finish", mode, thread.StatusFinished)

		view := v.run(c, id("retry"), "retry", mode, thread.StatusFailed)
		require.Contains(v.t, view.Error, v.mark("error"))
		require.Contains(v.t, view.Failure.Message, v.mark("error"))
		view, err := c.Retry(ctx, thread.RetryRequest{Thread: view.Thread})
		require.NoError(v.t, err)
		view, err = c.Wait(ctx, view.Thread)
		require.NoError(v.t, err)
		require.Contains(v.t, view.Error, v.mark("error"), "the retry went on from the stored state")

		view = v.run(c, id("panic"), "panic", mode, thread.StatusFailed)
		require.Contains(v.t, view.Error, v.mark("panic"))

		view = v.run(c, id("ask"), "ask", mode, thread.StatusWaiting)
		require.Contains(v.t, string(view.Questions[0].Value), v.mark("question"))
		if name != "exit" { // one of them stays open
			_, err = c.Resume(ctx, thread.ResumeRequest{Thread: view.Thread, Value: json.RawMessage(fmt.Sprintf("%q", v.mark("answer")))})
			require.NoError(v.t, err)
			_, err = c.Wait(ctx, view.Thread)
			require.NoError(v.t, err)
		}

		v.run(c, id("pay"), "pay", mode, thread.StatusWaiting)
		view, err = c.Cancel(ctx, thread.CancelRequest{Thread: prefix + "-" + name + "-pay", Mode: thread.CancelCompensate, Reason: v.mark("cancel reason")})
		require.NoError(v.t, err)
		require.Equal(v.t, 1, view.Cancel.Undone)

		hangs := id("hang")
		v.run(c, hangs, "hang", mode, "")
		view, err = c.Cancel(ctx, thread.CancelRequest{Thread: hangs, Reason: v.mark("reason of a hang")})
		require.NoError(v.t, err)
		require.Equal(v.t, thread.StatusCancelled, view.Status)
		require.Equal(v.t, v.mark("reason of a hang"), view.Error)
	}
	asks := prefix + "-approve"
	v.run(c, asks, "approve", thread.StartRequest{}, thread.StatusWaiting)
	_, err := c.Pause(ctx, thread.PauseRequest{Thread: asks, Reason: v.mark("pause reason"), By: "ann"})
	require.NoError(v.t, err)
	_, err = c.Unpause(ctx, thread.PauseRequest{Thread: asks, Reason: v.mark("unpause reason"), By: "ann"})
	require.NoError(v.t, err)

	text := ""
	for part, err := range c.Stream(ctx, thread.StreamRequest{Thread: prefix + "-sync-retry",
		Modes: []thread.StreamMode{thread.StreamCustom, thread.StreamTasks, thread.StreamDebug}}) {
		require.NoError(v.t, err)
		text += string(part.Data)
	}
	require.Contains(v.t, text, v.mark("error"))
	effects, err := c.Effects(ctx, thread.EffectsRequest{Thread: prefix + "-sync-pay"})
	require.NoError(v.t, err)
	require.Contains(v.t, string(effects.Effects[0].Receipt), v.mark("receipt"))
	var failures []string
	_, err = c.Follow(ctx, thread.View{Thread: prefix + "-sync-panic"}, func(p thread.Progress) { failures = append(failures, p.Error) })
	require.NoError(v.t, err)
	require.Contains(v.t, fmt.Sprint(failures), v.mark("panic"))
	return threads
}

func (v *vault) jobs(c *superstep.Client) {
	ctx, cancel := context.WithTimeout(v.t.Context(), 4*time.Minute)
	defer cancel()
	for i, goal := range []string{v.mark("goal"), v.mark("goal that fails"), v.mark("goal without a plan")} {
		id := fmt.Sprintf("job-%d", i)
		_, err := c.SubmitJob(ctx, thread.SubmitJob{Leader: "lead", Job: job.Job{ID: id, Goal: goal, Policy: job.Policy{MaxRetries: -1}}})
		require.NoError(v.t, err)
		said := ""
		for e, err := range c.FollowJob(ctx, id, 0) {
			require.NoError(v.t, err)
			said += fmt.Sprintf("%+v ", e)
		}
		view, err := c.Job(ctx, id)
		require.NoError(v.t, err)
		said += fmt.Sprintf("%+v", view)
		require.Contains(v.t, said, []string{"", v.mark("error of an expert"), v.mark("error of a planner")}[i])
	}
	answer, err := c.JobAnswer(ctx, "job-0")
	require.NoError(v.t, err)
	require.Contains(v.t, answer.Text, v.mark("output"))
	_, err = c.StopJob(ctx, "job-1", job.Halt{Reason: v.mark("stop reason")})
	require.ErrorIs(v.t, err, thread.ErrBadInput, "it has failed")
}

// withoutTheKey: who lacks the key, or has another one, is told so in one line that shows nothing.
func (v *vault) withoutTheKey(threads []string, others ...superstep.ClientConfig) {
	ctx := v.t.Context()
	for _, cfg := range others {
		cfg.TaskQueue = "vault"
		c, err := superstep.NewClient(v.dial(client.Options{}), cfg)
		require.NoError(v.t, err)
		for _, thread := range threads {
			_, err := c.Show(ctx, thread)
			v.unreadable(thread, err)
		}
		_, err = c.Wait(ctx, threads[0])
		v.unreadable("wait", err)
		_, err = c.State(ctx, thread.StateRequest{Thread: thread.StateRequest{Thread: threads[0]}.Thread})
		v.unreadable("state", err)
		_, err = c.Retry(ctx, thread.RetryRequest{Thread: "a-sync-retry"})
		v.unreadable("retry", err)
		_, err = c.Job(ctx, "job-1")
		v.unreadable("job", err)
		_, err = c.Resume(ctx, thread.ResumeRequest{Thread: "a-exit-ask", Value: json.RawMessage(`"x"`)})
		if v.hears { // the run took it, or has ended by now
			require.Error(v.t, err)
			require.NotContains(v.t, err.Error(), "marker-")
		} else {
			v.unreadable("resume", err)
		}
		_, err = c.Start(ctx, thread.StartRequest{Graph: "vault", Thread: "never", Input: json.RawMessage(`{"do": "finish"}`)})
		v.unreadable("start", err)
		list, err := c.List(ctx, thread.ListQuery{})
		require.NoError(v.t, err, "statuses are readable for all")
		require.NotEmpty(v.t, list)
	}
}

func (v *vault) unreadable(what string, err error) {
	v.t.Helper()
	require.ErrorIs(v.t, err, thread.ErrBadInput, what)
	require.ErrorContains(v.t, err, v.says, what)
	require.NotContains(v.t, err.Error(), "\n", what)
	require.NotContains(v.t, err.Error(), "marker-", what)
}

// TestAConverterThatHidesNothingIsRefused: neither a client nor a worker would say that it stores plain text.
func TestAConverterThatHidesNothingIsRefused(t *testing.T) {
	t.Parallel()
	s := rig.NewServer(t)
	plain := superstep.Encoded(client.Options{DataConverter: converter.GetDefaultDataConverter()}).FailureConverter
	_, err := superstep.NewClient(s.Temporal, superstep.ClientConfig{DataConverter: sealed(t), FailureConverter: plain})
	require.ErrorIs(t, err, thread.ErrBadInput)
	require.ErrorContains(t, err, "plain text")
	_, err = superstep.NewWorker(s.Temporal, superstep.WorkerConfig{DataConverter: sealed(t), FailureConverter: plain})
	require.ErrorContains(t, err, "plain text")
}
