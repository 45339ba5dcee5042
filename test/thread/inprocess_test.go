package thread_test

import (
	"context"
	"maps"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// inProcess is a client and a worker of graphs on one Temporal client. The interceptors are below the one that watches the worker.
func inProcess(t *testing.T, o client.Options, below []grpc.UnaryClientInterceptor, graphs ...superstep.Runnable) *rig.Server {
	t.Helper()
	o.HostPort, o.Logger = testserver.Address(t), rig.NoLog{}
	o = superstep.Watched(superstep.Encoded(o))
	o.ConnectionOptions.DialOptions = append(o.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(below...))
	c, err := client.Dial(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	s := &rig.Server{T: t, Temporal: c, Queue: testserver.Queue(t), Converter: o.DataConverter}
	s.Client, err = superstep.NewClient(c, superstep.ClientConfig{TaskQueue: s.Queue, DataConverter: o.DataConverter, FailureConverter: o.FailureConverter})
	require.NoError(t, err)
	s.WorkWith(superstep.WorkerConfig{Graphs: graphs, DataConverter: o.DataConverter, FailureConverter: o.FailureConverter})
	return s
}

// callers are the calls that no worker makes.
func (c *counter) callers() map[string]int {
	all := c.take()
	maps.DeleteFunc(all, func(method string, _ int) bool {
		return strings.HasPrefix(method, "Poll") && strings.HasSuffix(method, "TaskQueue") || strings.HasPrefix(method, "Respond") || method == "RecordWorkerHeartbeat"
	})
	return all
}

var shortRun = superstep.WithDurability(superstep.DurabilityAsync)

// TestTheEndIsKnownInProcess: where client and worker share a Temporal client a new thread takes one call, and what its caller is
// told of the end is what everybody is shown, with a codec too. A graph whose runs do not end at once costs no more calls than elsewhere.
func TestTheEndIsKnownInProcess(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]converter.DataConverter{"plain": nil,
		"codec": converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), converter.NewZlibCodec(converter.ZlibCodecOptions{AlwaysEncode: true}))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 20 { // until a client had all that it asked for before its first calls were over
				if knowsTheEnd(t, data) || t.Failed() {
					return
				}
			}
			t.Error("no client was quick enough")
		})
	}
}

// leavesItsTask reports whether a thread's newest run has scheduled an activity, as a run does whose opening was not through in its time.
func leavesItsTask(s *rig.Server, id string) bool {
	s.T.Helper()
	events := s.Temporal.GetWorkflowHistory(s.T.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(s.T, err)
		if e.GetActivityTaskScheduledEventAttributes() != nil {
			return true
		}
	}
	return false
}

// knowsTheEnd reports whether each run was quick enough to be waited for in this process, and through in the half second of its opening.
func knowsTheEnd(t *testing.T, data converter.DataConverter) (quick bool) {
	t.Helper()
	const most = 2 * time.Second
	g := turns()
	calls := &counter{by: map[string]int{}}
	s := inProcess(t, client.Options{DataConverter: data}, []grpc.UnaryClientInterceptor{calls.count}, g)
	quick = true
	invoke := func(id, word string) (superstep.Result[rig.Counter], map[string]int) {
		t.Helper()
		calls.take()
		began := time.Now()
		r, err := g.Thread(s.Client, id).Invoke(t.Context(), rig.Wrote(word), shortRun)
		took, made := time.Since(began), calls.callers()
		require.NoError(t, err)
		quick = quick && took < most && !leavesItsTask(s, id)
		return r, made
	}
	invoke(s.Queue+"-first", "hello")
	r, made := invoke(s.Queue, "hello")
	if quick {
		assert.Equal(t, map[string]int{"StartWorkflowExecution": 1}, made)
	}
	assert.Equal(t, thread.StatusFinished, r.Status)
	assert.Equal(t, []string{"hello"}, r.Output.Log.Get())
	shown, err := s.Show(t.Context(), s.Queue)
	require.NoError(t, err)
	assert.Equal(t, r.Status, shown.Status)
	assert.JSONEq(t, `["hello"]`, string(shown.Output["log"]))

	for _, word := range []string{"two", "three"} { // a run that follows, and a turn of it
		_, made := invoke(s.Queue, word)
		t.Log(word, made)
	}
	assert.Equal(t, []string{"hello", "two", "three"}, rig.LogOf(t, g.Thread(s.Client, s.Queue)))

	r, made = invoke(s.Queue+"-ask", "ask")
	assert.Equal(t, thread.StatusWaiting, r.Status)
	if quick {
		assert.Equal(t, map[string]int{"StartWorkflowExecution": 1, "UpdateWorkflowExecution": 1}, made)
	}
	r, made = invoke(s.Queue+"-again", "ask")
	assert.Equal(t, thread.StatusWaiting, r.Status)
	if quick {
		assert.Equal(t, map[string]int{"ExecuteMultiOperation": 1}, made)
	}
	return quick
}

// unheard is a connection on which the first completion of a run's task is not sent, or its reply is lost.
type unheard struct {
	sent bool
	code codes.Code
	left atomic.Int64
}

func (u *unheard) call(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if path.Base(method) != "RespondWorkflowTaskCompleted" || u.left.Add(-1) != 0 {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	if u.sent {
		if err := invoke(ctx, method, req, nothing(reply), cc, opts...); err != nil {
			return err
		}
	}
	return status.Error(u.code, "nothing was heard")
}

// TestAnEndThatIsNotAcknowledgedIsNone: the caller hears of the end when the server has it, however the worker's own call went.
func TestAnEndThatIsNotAcknowledgedIsNone(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]*unheard{
		"never sent": {code: codes.NotFound}, "sent again": {code: codes.Unavailable},
		"reply lost": {sent: true, code: codes.Unavailable}, "reply lost for good": {sent: true, code: codes.NotFound},
		"time over": {code: codes.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := turns()
			s := inProcess(t, client.Options{}, []grpc.UnaryClientInterceptor{lost.call}, g)
			_, err := g.Thread(s.Client, s.Queue+"-first").Invoke(t.Context(), rig.Wrote("hello"), shortRun)
			require.NoError(t, err)
			lost.left.Store(1)
			began := time.Now()
			r, err := g.Thread(s.Client, s.Queue).Invoke(t.Context(), rig.Wrote("hello"), shortRun)
			require.NoError(t, err)
			assert.Equal(t, thread.StatusFinished, r.Status)
			assert.Equal(t, []string{"hello"}, r.Output.Log.Get())
			assert.LessOrEqual(t, lost.left.Load(), int64(0), "nothing was lost")
			_, open := runOf(t, s, s.Queue)
			assert.False(t, open, "the end was told before it was stored")
			t.Log(time.Since(began))
		})
	}
}
