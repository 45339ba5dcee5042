package thread_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/proxy"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"

	"superstep.dev"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/thread/storage"
)

// stored are the events of a thread's newest run, as the server has them.
func stored(t *testing.T, s *rig.Server, id string) *historypb.History {
	t.Helper()
	got, err := s.Temporal.WorkflowService().GetWorkflowExecutionHistory(t.Context(), &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: "default", Execution: &commonpb.WorkflowExecution{WorkflowId: id}})
	require.NoError(t, err)
	require.Empty(t, got.GetNextPageToken())
	return got.GetHistory()
}

// sizeOf is how large the value of a payload is, and whether it goes by reference.
func sizeOf(p *commonpb.Payload) (bytes int, refers bool) {
	if of := p.GetExternalPayloads(); len(of) > 0 {
		return int(of[0].GetSizeBytes()), true
	}
	return proto.Size(p), false
}

// sized is a thread that has run with so many bytes said, and a requester with a name of so many: each adds to what is stored.
func sized(t *testing.T, th *superstep.Thread[rig.Counter], says, requester int) {
	t.Helper()
	got, err := th.Invoke(t.Context(), rig.Wrote(said(says, 1)), superstep.WithKeepOpen(-1), superstep.WithRequester(strings.Repeat("r", requester)))
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, got.Status)
	require.Equal(t, said(says, 1), got.Output.Log.Get()[len(got.Output.Log.Get())-1])
}

// keepsTheThreshold holds that of all values in a thread's newest run those, and only those, of so many bytes go by reference.
func keepsTheThreshold(t *testing.T, events *historypb.History, threshold int) {
	t.Helper()
	require.NoError(t, proxy.VisitPayloads(t.Context(), proto.CloneOf(events), proxy.VisitPayloadsOptions{SkipSearchAttributes: true,
		Visitor: func(_ *proxy.VisitPayloadsContext, all []*commonpb.Payload) ([]*commonpb.Payload, error) {
			for _, p := range all {
				size, refers := sizeOf(p)
				assert.Equal(t, size >= threshold, refers, "a value of %d bytes", size)
			}
			return all, nil
		}}))
}

// TestWhatGoesByReference: of the values in a run's history those that are as large as the threshold go by reference, and no others: what
// a client gives a new thread, what it gives one that has run, and what a worker returns.
func TestWhatGoesByReference(t *testing.T) {
	t.Parallel()
	first := func(events []*historypb.HistoryEvent) *commonpb.Payloads {
		return events[0].GetWorkflowExecutionStartedEventAttributes().GetInput()
	}
	for _, set := range []int{0, 4000, 50_000} {
		edge := cmp.Or(set, storage.DefaultThreshold)
		for what, c := range map[string]struct {
			before bool // the thread has run
			of     func([]*historypb.HistoryEvent) *commonpb.Payloads
		}{
			"the input of a new thread": {false, first},
			"the input of the next run": {true, first},
			"what a run leaves": {false, func(events []*historypb.HistoryEvent) *commonpb.Payloads {
				return events[len(events)-1].GetWorkflowExecutionCompletedEventAttributes().GetResult()
			}},
		} {
			t.Run(fmt.Sprint(what, " at ", set), func(t *testing.T) {
				t.Parallel()
				s := withOptions(t, rig.NewServer(t), filepath.Join(t.TempDir(), "values"), storage.Options{CacheBytes: 1, Threshold: set})
				g := talking("edge")
				s.work(g)
				says, requester, threads := edge/4, 100, 0
				try := func() int {
					threads++
					th := g.Thread(s.Client, fmt.Sprintf("%s-%04d", s.Queue, threads))
					if c.before {
						sized(t, th, 100, 100)
					}
					sized(t, th, says, requester)
					events := stored(t, s.Server, th.ID())
					keepsTheThreshold(t, events, edge)
					size, _ := sizeOf(c.of(events.GetEvents()).GetPayloads()[0])
					return size
				}
				for _, want := range []int{edge - 1, edge, edge + 1} {
					size := try()
					for tries := 0; size != want && tries < 30; tries++ { // times in it are not always as long
						if missing := want - size; requester+missing > 0 && requester+missing <= 200 {
							requester += missing
						} else {
							says, requester = says+missing/2, 100
						}
						size = try()
					}
					require.Equal(t, want, size)
				}
				t.Logf("%d threads", threads)
			})
		}
	}
}

// TestEverythingByReference: with the least of all thresholds a thread runs, asks, is answered, goes on and is read as with any other one.
func TestEverythingByReference(t *testing.T) {
	t.Parallel()
	for name, opts := range rig.Modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := rig.Chain("by-reference-"+name, "a", "b")
			b.AddNode("ask", rig.Asking("ask"))
			b.AddEdge("b", "ask")
			g := b.MustCompile(opts...)
			plain := rig.NewServer(t)
			s := withOptions(t, plain, filepath.Join(t.TempDir(), "values"), storage.Options{CacheBytes: 1, Threshold: 1})
			s.work(g)
			th := g.Thread(s.Client, s.Queue)
			var want []string
			for turn, word := range []string{"first", "second", "third"} {
				got := rig.Invoke(t, th, rig.Wrote(word))
				require.Equal(t, thread.StatusWaiting, got.Status)
				require.Len(t, got.Questions, 1)
				got, err := th.Resume(t.Context(), true)
				require.NoError(t, err)
				require.Equal(t, thread.StatusFinished, got.Status)
				want = append(want, word, "a", "b", "ask true")
				require.Equal(t, want, got.Output.Log.Get())
				keepsTheThreshold(t, stored(t, plain, th.ID()), 1)
				other := withOptions(t, plain, s.dir, storage.Options{CacheBytes: 1})
				assert.Equal(t, want, rig.LogOf(t, g.Thread(other.Client, th.ID())), "one with another threshold")
				view, err := other.Show(t.Context(), th.ID())
				require.NoError(t, err)
				assert.Equal(t, []any{thread.StatusFinished, "by-reference-" + name, ""}, []any{view.Status, view.Graph, view.Problem})
				if history := rig.HistoryOf(t, g.Thread(other.Client, th.ID())); name != "exit" {
					assert.Len(t, history, (turn+1)*5)
				}
			}
		})
	}
}
