package nats_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread/live"
	"superstep.dev/thread/live/nats"
	"superstep.dev/thread/secret"
)

// held is below the five seconds for which a socket that is full, or a server that does not answer, would hold a caller.
const held = 4500 * time.Millisecond

const patience = 2 * time.Minute

// emitting publishes the emissions of one task.
type emitting struct {
	*testing.T
	to   live.Transport
	next live.Emission
}

func emitter(t *testing.T, to live.Transport, thread, task string) *emitting {
	return &emitting{t, to, live.Emission{Thread: thread, Run: "r", Task: task, Scheduled: time.Unix(1_700_000_000, 0).UTC(), Execution: 1}}
}

// emit publishes so many emissions, none of which may take long, whatever the server does.
func (e *emitting) emit(count int) {
	e.Helper()
	for range count {
		e.value(fmt.Sprint(e.next.Sequence))
	}
}

func (e *emitting) value(text string) {
	e.Helper()
	began := time.Now()
	e.next.Emission = pregel.Emission{Value: pregel.Value(text)}
	require.NoError(e, e.to.Publish(e.Context(), e.next))
	e.next.Sequence++
	require.Less(e, time.Since(began), held)
}

// hearing is what a subscriber has, each emission once.
type hearing struct {
	*testing.T
	comes <-chan live.Emission
	last  map[live.Task]int
}

func hear(t *testing.T, from live.Transport, thread string) *hearing {
	t.Helper()
	began := time.Now()
	comes, err := from.Subscribe(t.Context(), thread)
	require.NoError(t, err)
	require.Less(t, time.Since(began), held)
	return &hearing{t, comes, map[live.Task]int{}}
}

// wants reads the emissions of a task from one to another.
func (h *hearing) wants(of live.Task, from, to int) {
	h.Helper()
	for n := from; n < to; {
		select {
		case e, open := <-h.comes:
			require.True(h, open)
			if e.Of() != of || e.Sequence < n {
				continue
			}
			require.Equal(h, n, e.Sequence)
			require.Equal(h, fmt.Sprint(n), string(e.Emission.Value))
			n++
		case <-time.After(patience):
			require.FailNow(h, "nothing came", "of %v from %d on", of, n)
		}
	}
}

// silent wants nothing to come for a moment.
func (h *hearing) silent() {
	h.Helper()
	select {
	case e := <-h.comes:
		require.FailNow(h, "something came", "%+v", e)
	case <-time.After(300 * time.Millisecond):
	}
}

func observed() (*zap.Logger, *observer.ObservedLogs) {
	core, logs := observer.New(zapcore.InfoLevel)
	return zap.New(core), logs
}

// saidOnce waits until a transport has said something, and wants it to have said it so often.
func saidOnce(t *testing.T, logs *observer.ObservedLogs, what string, times int) {
	t.Helper()
	count := func() int {
		return logs.Filter(func(e observer.LoggedEntry) bool { return strings.Contains(e.Message, what) }).Len()
	}
	require.Eventually(t, func() bool { return count() >= times }, patience, 10*time.Millisecond, what)
	require.Equal(t, times, count(), "%v", logs.All())
}

// The server is killed while a task emits, and is there again, with what it had or without: who follows, and who comes then, in this process and in
// another, has all of it.
func TestTheServerIsKilled(t *testing.T) {
	for _, storage := range []string{"file", "memory"} {
		t.Run(storage, func(t *testing.T) {
			server := testserver.StartNATS(t)
			logger, logs := observed()
			cfg := nats.Config{URL: server.URL + "?storage=" + storage, Logger: logger}
			worker := open(t, cfg)
			cfg.Logger = nil
			reader := open(t, cfg)
			n := emitter(t, worker, "t", "a")
			early := hear(t, reader, "t")
			n.emit(10)
			early.wants(n.next.Of(), 0, 10)
			for round := 1; round <= 2; round++ {
				require.NoError(t, server.Kill())
				saidOnce(t, logs, "no live tokens", round)
				n.emit(10)
				away := hear(t, reader, "t")
				require.NoError(t, server.Restart())
				saidOnce(t, logs, "there again", round)
				n.emit(10)
				all := 10 + round*20
				early.wants(n.next.Of(), all-20, all)
				away.wants(n.next.Of(), 0, all)
				hear(t, worker, "t").wants(n.next.Of(), 0, all)
				hear(t, open(t, cfg), "t").wants(n.next.Of(), 0, all)
			}
			require.NoError(t, worker.Ended(t.Context(), n.next.Of()))
			last := emitter(t, worker, "t", "b")
			last.emit(1)
			early.wants(last.next.Of(), 0, 1)
			late := hear(t, open(t, cfg), "t")
			e := <-late.comes
			require.Equal(t, last.next.Of(), e.Of(), "of a task that has ended nothing comes")
		})
	}
}

// The server stands still, with its connections open: nobody waits for it, and what was emitted meanwhile comes once it goes on.
func TestTheServerStandsStill(t *testing.T) {
	server := testserver.StartNATS(t)
	worker, reader := open(t, nats.Config{URL: server.URL}), open(t, nats.Config{URL: server.URL})
	n := emitter(t, worker, "t", "a")
	h := hear(t, reader, "t")
	n.emit(10)
	h.wants(n.next.Of(), 0, 10)
	require.NoError(t, server.Freeze())
	for range 300 {
		large := emitter(t, worker, "large", "a")
		large.value(`"` + strings.Repeat("x", 100<<10) + `"`) // more than sockets take
	}
	n.emit(10)
	hear(t, reader, "another")
	require.NoError(t, server.Thaw())
	h.wants(n.next.Of(), 10, 20)
}

// There is no server: nobody waits, and it is said once.
func TestThereIsNoServer(t *testing.T) {
	server := testserver.StartNATS(t)
	require.NoError(t, server.Kill())
	logger, logs := observed()
	tr := open(t, nats.Config{URL: server.URL, Logger: logger})
	n := emitter(t, tr, "t", "a")
	n.emit(20_000)
	h := hear(t, tr, "t")
	h.silent()
	saidOnce(t, logs, "no live tokens", 1)
	require.NoError(t, tr.Ended(t.Context(), n.next.Of()))
	tr.Close()
	_, open := <-h.comes
	require.False(t, open)
	require.Error(t, tr.Publish(t.Context(), n.next))
	saidOnce(t, logs, "no live tokens", 1)
}

// The stream is deleted, or is somebody's who has other bounds: it is made again, or used as it is. A server that has another name than was
// announced gets nothing.
func TestTheStreamOfOthers(t *testing.T) {
	server := testserver.StartNATS(t)
	conn, err := natsgo.Connect(server.URL)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "SUPERSTEP_LIVE", Subjects: []string{"superstep.live.>"},
		MaxMsgsPerSubject: 7, AllowRollup: true, AllowMsgTTL: true, Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
	tr := open(t, nats.Config{URL: server.URL})
	n := emitter(t, tr, "t", "a")
	h := hear(t, tr, "t")
	for number := range 20 {
		n.emit(1)
		h.wants(n.next.Of(), number, number+1)
	}
	late := hear(t, open(t, nats.Config{URL: server.URL}), "t")
	late.silent() // without its beginning it is of no use
	next := emitter(t, tr, "t", "b")
	next.emit(7)
	late.wants(next.next.Of(), 0, 7)
	h.wants(next.next.Of(), 0, 7)

	logger, logs := observed()
	other := open(t, nats.Config{URL: server.URL + "?id=superstep-another", Logger: logger})
	emitter(t, other, "t", "b").emit(1)
	saidOnce(t, logs, "no live tokens", 1)
	h.silent()
}

// A process follows many threads at once, each as if it was the only one.
func TestManyThreads(t *testing.T) {
	server := testserver.StartNATS(t)
	worker, reader := open(t, nats.Config{URL: server.URL}), open(t, nats.Config{URL: server.URL})
	all := make([]*hearing, 2_000)
	var subscribing sync.WaitGroup
	for n := range all {
		subscribing.Go(func() {
			comes, err := reader.Subscribe(t.Context(), fmt.Sprint("t", n))
			assert.NoError(t, err)
			all[n] = &hearing{t, comes, map[live.Task]int{}}
		})
	}
	subscribing.Wait()
	tasks := make([]*emitting, len(all))
	for n := range all {
		tasks[n] = emitter(t, worker, fmt.Sprint("t", n), "a")
		tasks[n].emit(5)
	}
	for n, h := range all {
		h.wants(tasks[n].next.Of(), 0, 5)
	}
}

// What is published is as unreadable for the server as what is stored, names included. Who has no keys gets nothing, and hears why once.
func TestWithKeys(t *testing.T) {
	server := testserver.StartNATS(t)
	ring, _, err := secret.Ring{}.Rotate("k-1", time.Now(), time.Now())
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(file, ring.Text(), 0o600))
	keys, err := secret.File(file, secret.Options{})
	require.NoError(t, err)
	cfg := nats.Config{URL: server.URL, DataConverter: keys.Converter(nil)}
	tr := open(t, cfg)
	conn, err := natsgo.Connect(server.URL)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	raw := make(chan *natsgo.Msg, 10)
	_, err = conn.ChanSubscribe("superstep.live.>", raw)
	require.NoError(t, err)
	require.NoError(t, conn.Flush())
	logger, logs := observed()
	blind := hear(t, open(t, nats.Config{URL: server.URL, Logger: logger}), "thread-4111")
	h := hear(t, open(t, cfg), "thread-4111")
	n := emitter(t, tr, "thread-4111", "1/node-4111")
	n.value("4111")
	require.Equal(t, "4111", string((<-h.comes).Emission.Value))
	saidOnce(t, logs, "cannot be read with the keys", 1)
	blind.silent()
	for {
		m := <-raw
		require.NotContains(t, m.Subject+string(m.Data), "4111")
		if len(m.Data) > 0 {
			break
		}
	}
}

// Whoever may publish can put anything into the stream: it is passed over.
func TestWhatOthersPublish(t *testing.T) {
	server := testserver.StartNATS(t)
	tr := open(t, nats.Config{URL: server.URL})
	n := emitter(t, tr, "t", "a")
	h := hear(t, tr, "t")
	n.emit(1)
	h.wants(n.next.Of(), 0, 1)
	conn, err := natsgo.Connect(server.URL)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	raw := make(chan *natsgo.Msg, 10)
	_, err = conn.ChanSubscribe("superstep.live.>", raw)
	require.NoError(t, err)
	require.NoError(t, conn.Flush())
	n.emit(1)
	h.wants(n.next.Of(), 1, 2)
	subject := (<-raw).Subject
	for _, data := range [][]byte{{}, {0xff}, []byte("{}"), bytes.Repeat([]byte{0x0a}, 100_000)} {
		for _, header := range []natsgo.Header{nil, {"Superstep-Ended": {"1"}}, {"Superstep-Mark": {"-7"}}, {"Superstep-Mark": {"x"}}} {
			require.NoError(t, conn.PublishMsg(&natsgo.Msg{Subject: subject, Data: data, Header: header}))
		}
	}
	require.NoError(t, conn.Flush())
	n.emit(1)
	h.wants(n.next.Of(), 2, 3)
}

// TestTooLarge: an emission above the bound is refused, and the next one of another task comes.
func TestTooLarge(t *testing.T) {
	tr := open(t, nats.Config{URL: testserver.StartNATS(t).URL})
	n := emitter(t, tr, "t", "a")
	n.next.Emission.Value = pregel.Value(`"` + strings.Repeat("x", 2<<20) + `"`)
	require.ErrorContains(t, tr.Publish(t.Context(), n.next), "1048576 at most")
	next := emitter(t, tr, "t", "b")
	next.emit(1)
	hear(t, tr, "t").wants(next.next.Of(), 0, 1)
}

// Addresses that cannot be are refused before anything is connected, and what may be a password is repeated nowhere.
func TestAddresses(t *testing.T) {
	for _, url := range []string{"", "none", "http://h:1", "nats://", "nats://h:1,", "nats://user:pass4111@h:1", "nats://h:1/path4111", "nats://h:port",
		"nats://h:1?x=1", "nats://h:1?storage=disk", "nats://h:1?storage=file&storage=memory", "nats://h:1?cert=c4111", "nats://h:1?%zz",
		"nats://h:1?creds=", "nats://" + strings.Repeat("h", 5000)} {
		_, err := nats.Open(nats.Config{URL: url})
		require.ErrorIs(t, err, nats.ErrBadURL, url)
		require.NotContains(t, err.Error(), "4111")
		require.Less(t, len(err.Error()), 500)
	}
	missing := filepath.Join(t.TempDir(), "missing.pem")
	_, err := nats.Open(nats.Config{URL: "tls://h:1?ca=" + missing})
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, url := range []string{"nats://127.0.0.1", "nats://[::1]:4222,h2:4223?storage=memory", "tls://nats.example.com:4222?id=one"} {
		_, err := nats.Open(nats.Config{URL: url})
		require.NoError(t, err, url)
	}
}

// Who does not follow a thread any more leaves nothing behind that is at work.
func TestReadersThatHaveGone(t *testing.T) {
	transport := open(t, nats.Config{URL: testserver.StartNATS(t).URL})
	ctx, leave := context.WithCancel(t.Context())
	for n := range 20 {
		_, err := transport.Subscribe(ctx, fmt.Sprint("thread ", n))
		require.NoError(t, err)
	}
	following := func() int {
		stacks := make([]byte, 16<<20)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "(*fan).run(")
	}
	require.Eventually(t, func() bool { return following() == 20 }, patience, 10*time.Millisecond) // those of earlier tests may just be ending
	leave()
	require.Eventually(t, func() bool { return following() == 0 }, patience, 10*time.Millisecond)
}
