package superstep_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"superstep.dev"
	"superstep.dev/test/rig"
)

type Refund struct {
	Order  string `json:"order"`
	Amount int64  `json:"amount"`
}

type Receipt struct {
	ID string `json:"id"`
}

type RefundState struct {
	Order   superstep.Value[string] `json:"order"`
	Amount  superstep.Value[int64]  `json:"amount"`
	Receipt superstep.Value[string] `json:"receipt"`
}

// bank is a payment service that remembers refunds by their key.
type bank struct {
	refunds map[string]Receipt
	replies int
}

func (b *bank) refund(_ context.Context, key string, r Refund) (Receipt, error) {
	b.refunds[key] = Receipt{ID: fmt.Sprint("rf-", r.Order)}
	if b.replies++; b.replies == 1 {
		return Receipt{}, errors.New("connection reset") // after the money went
	}
	return b.refunds[key], nil
}

func (b *bank) find(_ context.Context, key string, _ Refund) (superstep.Finding[Receipt], error) {
	if r, ok := b.refunds[key]; ok {
		return superstep.Finding[Receipt]{Status: superstep.FindingCommitted, Receipt: r}, nil
	}
	return superstep.Finding[Receipt]{Status: superstep.FindingNotFound}, nil
}

// A write to the outside is declared with how to find it again. The bank refunds and does not reply; the second attempt
// of the node finds the refund instead of making another one.
func ExampleEffect() {
	b := &bank{refunds: map[string]Receipt{}}
	refund := &superstep.Effect[Refund, Receipt]{
		Name: "bank.refund", Target: superstep.TargetKeyed, Do: b.refund, Lookup: b.find,
	}
	g := superstep.NewStateGraph[RefundState]("refund")
	g.AddEffect(refund)
	g.AddNode("pay", func(ctx context.Context, s RefundState) (RefundState, error) {
		receipt, err := refund.Call(ctx, Refund{s.Order.Get(), s.Amount.Get()})
		if err != nil {
			return s, err
		}
		s.Receipt.Set(receipt.ID)
		return s, nil
	}, superstep.WithRetry(superstep.RetryPolicy{InitialInterval: -1, NoJitter: true}))
	g.AddEdge(superstep.Start, "pay")

	var in RefundState
	in.Order.Set("o-7")
	in.Amount.Set(250)
	result, err := g.MustCompile().Invoke(context.Background(), in)
	fmt.Println(result.Output.Receipt.Get(), err)
	fmt.Println("refunds made:", b.replies)
	// Output:
	// rf-o-7 <nil>
	// refunds made: 1
}

// A node asks, the run waits, and the node runs again with the answer.
func ExampleInterrupt() {
	g := superstep.NewStateGraph[RefundState]("approval")
	g.AddNode("ask", func(ctx context.Context, s RefundState) (RefundState, error) {
		approved, err := superstep.Interrupt[bool](ctx, fmt.Sprintf("Refund %d?", s.Amount.Get()))
		if err != nil {
			return s, err
		}
		if !approved {
			s.Amount.Set(0)
		}
		return s, nil
	})
	g.AddEdge(superstep.Start, "ask")

	ctx := context.Background()
	thread := g.MustCompile().Thread(superstep.NewMemory(), "r-7")
	var in RefundState
	in.Amount.Set(250)
	result, err := thread.Invoke(ctx, in)
	fmt.Println(string(result.Questions[0].Value), string(result.Questions[0].Schema), err)
	result, err = thread.Resume(ctx, false)
	fmt.Println(result.Output.Amount.Get(), err)
	// Output:
	// "Refund 250?" {"type":"boolean"} <nil>
	// 0 <nil>
}

// Calls that run at the same time are remembered one by one: when the node runs again after an answer, none is made
// again.
func ExampleGo() {
	calls := make(chan string, 4)
	g := superstep.NewStateGraph[RefundState]("quotes")
	g.AddNode("compare", func(ctx context.Context, s RefundState) (RefundState, error) {
		var quotes []*superstep.Future[int64]
		for i, shop := range []string{"a", "b"} {
			quotes = append(quotes, superstep.Go(ctx, "quote", func(context.Context) (int64, error) {
				calls <- shop
				return int64(100 - 10*i), nil
			}))
		}
		for _, q := range quotes {
			price, err := q.Get(ctx)
			if err != nil {
				return s, err
			}
			s.Amount.Set(price)
		}
		take, err := superstep.Interrupt[bool](ctx, fmt.Sprintf("Take %d?", s.Amount.Get()))
		if err != nil {
			return s, err
		}
		s.Receipt.Set(fmt.Sprint(take))
		return s, nil
	})
	g.AddEdge(superstep.Start, "compare")

	ctx := context.Background()
	thread := g.MustCompile().Thread(superstep.NewMemory(), "q-1")
	_, err := thread.Invoke(ctx, RefundState{})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := thread.Resume(ctx, true)
	fmt.Println(result.Output.Amount.Get(), result.Output.Receipt.Get(), err)
	fmt.Println("calls made:", len(calls))
	// Output:
	// 90 true <nil>
	// calls made: 2
}

// The state is where a key comes from that does not depend on the order of calls.
func ExampleWithKey() {
	g := superstep.NewStateGraph[RefundState]("lookups")
	g.AddNode("ask", func(ctx context.Context, s RefundState) (RefundState, error) {
		prices := map[string]int64{"x": 1, "y": 2} // a map has no order
		for item, price := range prices {
			total, err := superstep.Task(ctx, "price", func(context.Context) (int64, error) {
				return price * 100, nil
			}, superstep.WithKey(item))
			if err != nil {
				return s, err
			}
			s.Amount.Set(s.Amount.Get() + total)
		}
		return s, nil
	})
	g.AddEdge(superstep.Start, "ask")
	var in RefundState
	in.Amount.Set(0)
	result, err := g.MustCompile().Invoke(context.Background(), in)
	fmt.Println(result.Output.Amount.Get(), err)
	// Output:
	// 300 <nil>
}

// An agent comes back to the same refund in every round. Its business key makes all of them one: also on another branch,
// after a crash, and in a later run of the thread.
func ExampleWithThreadKey() {
	b := &bank{refunds: map[string]Receipt{}, replies: 1}
	refund := &superstep.Effect[Refund, Receipt]{
		Name: "bank.refund", Target: superstep.TargetKeyed, Do: b.refund, Lookup: b.find,
	}
	g := superstep.NewStateGraph[rig.Counter]("agent")
	g.AddEffect(refund)
	g.AddNode("act", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		receipt, err := refund.Call(ctx, Refund{Order: "o-7", Amount: 250}, superstep.WithThreadKey("order/o-7"))
		if err != nil {
			return s, err
		}
		s.Log.Append(receipt.ID)
		s.N.Set(s.N.Get() + 1)
		return s, nil
	})
	g.AddEdge(superstep.Start, "act")
	g.AddConditionalEdges("act", func(_ context.Context, s rig.Counter) ([]superstep.Target, error) {
		if s.N.Get() < 3 {
			return superstep.To("act"), nil
		}
		return superstep.To(superstep.End), nil
	})

	ctx := context.Background()
	thread := g.MustCompile().Thread(superstep.NewMemory(), "r-7")
	for range 2 {
		result, err := thread.Invoke(ctx, rig.Counter{})
		fmt.Println(result.Output.Log.Get(), err)
	}
	fmt.Println("refunds made:", len(b.refunds))
	// Output:
	// [rf-o-7 rf-o-7 rf-o-7] <nil>
	// [rf-o-7 rf-o-7 rf-o-7 rf-o-7] <nil>
	// refunds made: 1
}

// An effect posts to a bank that refuses what arrives too late: the transport sends nothing once the time of the call is
// over, and the header tells the bank when that is.
func ExampleGuardedTransport() {
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		notAfter, err := time.Parse(time.RFC3339Nano, r.Header.Get("X-Not-After"))
		if err != nil || time.Now().After(notAfter) {
			http.Error(w, "too late", http.StatusPreconditionFailed)
			return
		}
		fmt.Println("the bank has", time.Until(notAfter) <= 10*time.Second, r.Header.Get("Idempotency-Key") != "")
		_ = json.NewEncoder(w).Encode("pay-1")
	}))
	defer bank.Close()
	client := &http.Client{Transport: superstep.GuardedTransport(nil)}

	pay := &superstep.Effect[string, string]{Name: "bank.pay", Target: superstep.TargetLookupOnly,
		Do: func(ctx context.Context, key, to string) (receipt string, err error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, bank.URL, strings.NewReader(to)) // Do's own context
			if err != nil {
				return "", err
			}
			req.Header.Set("Idempotency-Key", key)
			if at, ok := superstep.CallDeadline(ctx); ok {
				req.Header.Set("X-Not-After", at.UTC().Format(time.RFC3339Nano))
			}
			resp, err := client.Do(req)
			if err != nil {
				return "", err
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return "", fmt.Errorf("the bank says %s", resp.Status)
			}
			return receipt, json.NewDecoder(resp.Body).Decode(&receipt)
		},
		Lookup: func(context.Context, string, string) (superstep.Finding[string], error) {
			return superstep.Finding[string]{Status: superstep.FindingUnknown}, nil // a real one asks the bank
		},
	}
	g := superstep.NewStateGraph[trip]("payout")
	g.AddEffect(pay)
	g.AddNode("pay", func(ctx context.Context, s trip) (trip, error) {
		receipt, err := pay.Call(ctx, "ann in "+s.City.Get(), superstep.WithCallTimeout(10*time.Second))
		s.Ticket.Set(receipt)
		return s, err
	})
	g.AddEdge(superstep.Start, "pay")
	result, err := g.MustCompile().Thread(superstep.NewMemory(), "payout-7").Invoke(context.Background(), tripTo("Rome"))
	fmt.Println(result.Output.Ticket.Get(), err)

	// Outside of an effect's call nothing that may change something is sent.
	_, err = client.Post(bank.URL, "text/plain", strings.NewReader("ann"))
	fmt.Println(errors.Is(err, superstep.ErrOutsideCall))
	// Output:
	// the bank has true true
	// pay-1 <nil>
	// true
}

// parcel is the state of a graph that delivers something.
type parcel struct {
	Place   superstep.Value[string] `json:"place"`
	Receipt superstep.Value[string] `json:"receipt"`
}

// delivery is a graph: what it does is up to its workers.
func delivery() *superstep.Graph[parcel] {
	g := superstep.NewStateGraph[parcel]("delivery")
	g.AddNode("deliver", func(_ context.Context, s parcel) (parcel, error) {
		s.Receipt.Set("signed in " + s.Place.Get())
		return s, nil
	})
	g.AddEdge(superstep.Start, "deliver")
	return g.MustCompile()
}

func parcelTo(place string) parcel {
	var s parcel
	s.Place.Set(place)
	return s
}

// A workflow of one's own runs a graph as a child: a thread that is listed, asks people and is resumed as any other. Its test needs no
// server: a workflow named superstep.graph stands in for the graph, and returns what a run does.
func ExampleExecuteGraph() {
	order := func(ctx workflow.Context, number string) (string, error) {
		ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: "delivery-" + number, TaskQueue: "superstep"})
		delivered, err := superstep.ExecuteGraph(ctx, delivery(), parcelTo("Oslo"), superstep.WithRequester("rita")).Get(ctx)
		if err != nil {
			return "", err // a *RunError names the thread and the node
		}
		return delivered.Receipt.Get(), nil
	}

	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterWorkflowWithOptions(func(_ workflow.Context, run map[string]any) (map[string]any, error) {
		fmt.Println("graph", run["graph"], "with", run["input"], "for", run["requester"])
		return map[string]any{"output": map[string]any{"receipt": "signed in Oslo"}}, nil
	}, workflow.RegisterOptions{Name: "superstep.graph"})
	env.ExecuteWorkflow(order, "o-7")
	var receipt string
	fmt.Println(env.GetWorkflowResult(&receipt), receipt)
	// Output:
	// graph delivery with map[place:Oslo] for rita
	// <nil> signed in Oslo
}

// A Temporal schedule starts a run each morning. Runs are threads named after the action and the time.
func ExampleScheduleAction() {
	action, err := superstep.ScheduleAction(delivery(), "milk", parcelTo("Oslo"), superstep.WithDurability(superstep.DurabilityAsync))
	if err != nil {
		fmt.Println(err)
		return
	}
	every := client.ScheduleOptions{ID: "milk", Action: action,
		Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: 24 * time.Hour, Offset: 7 * time.Hour}}}}
	// _, err = temporalClient.ScheduleClient().Create(ctx, every)

	fmt.Println(every.ID, action.Workflow, action.TaskQueue)
	// Output: milk superstep.graph superstep
}
