package workflows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"superstep.dev"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/codec"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread/storage"
	"superstep.dev/workflows/protocol"
)

const (
	// mostBytes is the size of a history at which runs of these tests are continued as new ones, and turnBytes what is said in a turn.
	mostBytes = 64 << 10
	turnBytes = 8 << 10
)

// noise is a text of n bytes that does not compress to nothing, the same for the same number.
func noise(n, number int) string {
	from := rand.New(rand.NewPCG(uint64(number), 7))
	out := make([]byte, 0, n+16)
	for len(out) < n {
		out = fmt.Appendf(out, "%016x", from.Uint64())
	}
	return string(out[:n])
}

// hears is a conversation of which each turn brings a text of turnBytes, and node b of chainGraph says something.
type hears struct {
	*rig
	thread string
	in     protocol.GraphInput
	turns  int
	said   func(turn int) string // by node b
}

// says is the input of the next turn.
func (c *hears) says() protocol.Input {
	return input(asJSON(c.t, map[string][]string{"log": {noise(turnBytes, c.turns)}}))
}

// turn gives the next turn, and wants it to be answered with its end.
func (c *hears) turn() {
	c.t.Helper()
	in := c.in
	in.Graph, in.ID, in.KeepOpen = "chain", fmt.Sprint("turn-", c.turns), -1
	in.Input = c.says()
	in.ContinueAt = &protocol.ContinueAt{Bytes: mostBytes, Life: 1}
	reply, err := c.startOrTurn(c.thread, in)
	if err != nil || reply.Status != protocol.StatusFinished {
		c.t.Fatalf("%s is answered with %+v, %v", in.ID, reply, err)
	}
	c.turns++
}

// logged compares a log with what the turns made, text by text: together they are too long to be shown.
func (c *hears) logged(log pregel.Value) {
	c.t.Helper()
	var got []string
	if err := json.Unmarshal(log, &got); err != nil {
		c.t.Fatal(err)
	}
	for i, text := range got {
		if want := []string{noise(turnBytes, i/4), "a", c.said(i / 4), "c"}[i%4]; text != want {
			c.t.Fatalf("of the log text %d is %.20q of %d bytes, want %.20q of %d", i, text, len(text), want, len(want))
		}
	}
	if len(got) != 4*c.turns {
		c.t.Errorf("the log has %d texts, want %d", len(got), 4*c.turns)
	}
}

// sizesAt are the sizes of a run's history with which its workflow tasks began.
func sizesAt(h *historypb.History) (sizes []int64) {
	for _, e := range h.Events {
		if a := e.GetWorkflowTaskStartedEventAttributes(); a != nil {
			sizes = append(sizes, a.GetHistorySizeBytes())
		}
	}
	return sizes
}

// events is how many events of that type a run has.
func events(h *historypb.History, of enumspb.EventType) (n int) {
	for _, e := range h.Events {
		if e.GetEventType() == of {
			n++
		}
	}
	return n
}

// TestAConversationIsContinuedByItsBytes: when its history has so many, and not again and again for a state that has as many itself. Nothing
// of what was said is lost, or there twice.
func TestAConversationIsContinuedByItsBytes(t *testing.T) {
	for mode, in := range allModes() {
		t.Run("bytes"+mode, func(t *testing.T) {
			t.Parallel()
			c := &hears{rig: newRig(t), thread: testserver.Queue(t), in: in, said: func(int) string { return "b" }}
			c.work(chainGraph())
			for range 16 {
				c.turn()
			}
			s := c.until(c.thread, "the last turn", func(s protocol.State) bool { return s.Status == protocol.StatusFinished })
			c.logged(s.Snapshot.Values["log"])
			runs := c.runs(c.thread)
			if len(runs) < 3 {
				t.Fatalf("the thread has %d runs", len(runs))
			}
			for n, run := range runs[:len(runs)-1] {
				h := c.historyOf(c.thread, run)
				sizes := sizesAt(h)
				began, ended := sizes[0], sizes[len(sizes)-1]
				if ended < mostBytes || ended-began > mostBytes+4*turnBytes {
					t.Errorf("run %d began with %d bytes and was continued with %d", n, began, ended)
				}
				if events(h, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED)+events(h, enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED) == 0 {
					t.Errorf("run %d was continued with %d bytes, and did nothing", n, ended)
				}
			}
			handed := sizesAt(c.historyOf(c.thread, runs[len(runs)-1]))[0]
			if handed < mostBytes {
				t.Errorf("the last run was handed %d bytes: there was none that has more than it is continued with", handed)
			}
		})
	}
}

// TestAContinuedRunIsToldByReference: with a storage no event of any of a thread's runs holds its state, which grows to megabytes, the one
// with which a run is continued and the one with which the next begins included.
func TestAContinuedRunIsToldByReference(t *testing.T) {
	for mode, in := range allModes() {
		t.Run("told"+mode, func(t *testing.T) {
			t.Parallel()
			const turns, each = 24, 96 << 10
			c := &hears{rig: newRig(t), thread: testserver.Queue(t), in: in, said: func(turn int) string { return noise(each, turn) }}
			g := chainGraph()
			g.Nodes["b"] = graphadapter.Node{Run: func(_ context.Context, in graphadapter.Input) (pregel.Command, error) {
				var log []string
				err := json.Unmarshal(in.State["log"].Value(), &log)
				return writes("log", []string{c.said(len(log) / 4)}), err
			}}
			values, err := storage.Files(t.TempDir(), storage.Options{})
			if err != nil {
				t.Fatal(err)
			}
			c.serve(superstep.WorkerConfig{Storage: values}, g)
			if c.client, err = codec.Over(c.client, nil, client.Options{ExternalStorage: values.External(), Logger: silent{}}); err != nil {
				t.Fatal(err)
			}
			for range turns {
				c.turn()
			}
			last := turnOf(protocol.GraphInput{Graph: "chain", ID: "last", Input: c.says()})
			last.Settings = &protocol.Settings{KeepOpen: 1} // the run ends, and leaves all of its state
			if err := c.invoke(c.thread, last); err != nil {
				t.Fatal(err)
			}
			c.turns++
			c.logged(logOf(t, g, c.finished(c.client.GetWorkflow(c.ctx, c.thread, ""))))
			runs := c.runs(c.thread)
			if len(runs) < 3 {
				t.Errorf("the thread has %d runs", len(runs))
			}
			before := 0 // turns that were taken before the last run
			for n, run := range runs {
				h := c.historyOf(c.thread, run)
				for _, e := range h.Events {
					if size := proto.Size(e); size >= mostBytes {
						t.Errorf("run %d has an event of %d bytes, %v", n, size, e.GetEventType())
					}
					a := e.GetWorkflowExecutionUpdateAcceptedEventAttributes()
					if n < len(runs)-1 && a.GetAcceptedRequest().GetInput().GetName() == protocol.UpdateInvoke {
						before++
					}
				}
			}
			if before < turns/2 {
				t.Errorf("the last run was handed %d turns, want at least %d", before, turns/2)
			}
		})
	}
}

// logOf is the log in the state that a run left.
func logOf(t *testing.T, g *graphadapter.Graph, left *protocol.GraphResult) pregel.Value {
	t.Helper()
	program, err := g.Program()
	if err != nil {
		t.Fatal(err)
	}
	thread, err := program.DecodeThread(left.State)
	if err != nil {
		t.Fatal(err)
	}
	now, err := program.Now(thread)
	if err != nil {
		t.Fatal(err)
	}
	return now.Values["log"]
}
