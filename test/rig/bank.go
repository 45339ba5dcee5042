package rig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/thread"
)

// Transfer is the parameters of the bank's one write.
type Transfer struct {
	To     string `json:"to"`
	Amount int64  `json:"amount"`
}

// Slip is the receipt of the bank's one write.
type Slip struct {
	ID string `json:"id"`
}

// Bank is outside of the graph, and counts what it is asked. A transfer that is taken back is not there any more, and its key makes no other.
type Bank struct {
	mu    sync.Mutex
	made  map[string]Transfer // by key
	slips int
	// calls are all that was asked, in order: "pay ann", "find ann", "take back ann".
	calls []string
	// fail, when set, is asked before each call, by its name in calls.
	fail func(call string) error
	// after, when set, is asked when a call is through: its error is what the caller gets.
	after func(call string) error
	// undo are the keys of the compensations that were made, gone those of the transfers that were taken back.
	undo, gone map[string]bool
}

// NewBank is a bank that was asked nothing yet.
func NewBank() *Bank {
	return &Bank{made: map[string]Transfer{}, undo: map[string]bool{}, gone: map[string]bool{}}
}

func (b *Bank) call(what string) error {
	b.mu.Lock()
	b.calls = append(b.calls, what)
	fail := b.fail
	b.mu.Unlock()
	if fail != nil {
		return fail(what)
	}
	return nil
}

func (b *Bank) through(what string) error {
	b.mu.Lock()
	after := b.after
	b.mu.Unlock()
	if after != nil {
		return after(what)
	}
	return nil
}

// Failing makes calls fail from now on as fail says.
func (b *Bank) Failing(fail, after func(call string) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail, b.after = fail, after
}

func (b *Bank) pay(_ context.Context, key string, p Transfer) (Slip, error) {
	if err := b.call("pay " + p.To); err != nil {
		return Slip{}, err
	}
	b.mu.Lock()
	if _, before := b.made[key]; !before && !b.gone[key] { // a key that was used is answered with its old slip
		b.made[key] = p
		b.slips++
	}
	s := Slip{ID: fmt.Sprintf("s-%d", b.slips)}
	b.mu.Unlock()
	return s, b.through("pay " + p.To)
}

func (b *Bank) find(_ context.Context, key string, p Transfer) (superstep.Finding[Slip], error) {
	if err := b.call("find " + p.To); err != nil {
		return superstep.Finding[Slip]{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, there := b.made[key]; there {
		return superstep.Finding[Slip]{Status: superstep.FindingCommitted, Receipt: Slip{ID: "found"}}, nil
	}
	return superstep.Finding[Slip]{Status: superstep.FindingNotFound}, nil
}

// takeBack undoes what was paid under a key that it does not get: by the parameters, as a bank would by the receipt.
func (b *Bank) takeBack(_ context.Context, key string, p Transfer, _ Slip) error {
	if err := b.call("take back " + p.To); err != nil {
		return err
	}
	b.mu.Lock()
	for k, t := range b.made {
		if t == p && !b.undo[key] {
			delete(b.made, k)
			b.undo[key], b.gone[k] = true, true
			break
		}
	}
	b.mu.Unlock()
	return b.through("take back " + p.To)
}

// Asked are the calls so far.
func (b *Bank) Asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls)
}

// Paid returns to whom money was paid that was not taken back.
func (b *Bank) Paid() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := []string{}
	for _, t := range b.made {
		out = append(out, t.To)
	}
	slices.Sort(out)
	return out
}

// Effect is the bank's write as an effect of that name.
func (b *Bank) Effect(name string) *superstep.Effect[Transfer, Slip] {
	return &superstep.Effect[Transfer, Slip]{Name: name, Target: superstep.TargetKeyed, Do: b.pay, Lookup: b.find, Compensate: b.takeBack}
}

// Payment is a state of graphs that pay.
type Payment struct {
	Log superstep.List[string] `json:"log"`
}

// Paying is a node that pays to each of those, one after the other.
func Paying(e *superstep.Effect[Transfer, Slip], to ...string) func(context.Context, Payment) (Payment, error) {
	return func(ctx context.Context, s Payment) (Payment, error) {
		for _, name := range to {
			if _, err := e.Call(ctx, Transfer{To: name, Amount: 1}); err != nil {
				return s, err
			}
			s.Log.Append("paid " + name)
		}
		return s, nil
	}
}

// Empty makes the bank forget what it was asked.
func (b *Bank) Empty() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made, b.undo, b.gone, b.calls, b.fail, b.after = map[string]Transfer{}, map[string]bool{}, map[string]bool{}, nil, nil, nil
}

// TakenBack are those from whom money was taken back, in that order.
func (b *Bank) TakenBack() []string {
	var out []string
	for _, call := range b.Asked() {
		if name, ok := strings.CutPrefix(call, "take back "); ok {
			out = append(out, name)
		}
	}
	return out
}

// EffectsOf are the effects of a thread as "node step state", in their order.
func EffectsOf(t *testing.T, th *superstep.Thread[Payment]) []string {
	t.Helper()
	view, err := th.Effects(t.Context())
	require.NoError(t, err)
	out := []string{}
	seen := map[string]bool{}
	for _, e := range view.Effects {
		require.False(t, seen[e.Key], "two rows of %s", e.Key)
		seen[e.Key] = true
		out = append(out, e.Node+" "+string(rune('0'+e.Step))+" "+e.State)
	}
	return out
}

// Undoable is a graph that pays, and the bank that it pays by.
type Undoable struct {
	Graph *superstep.Graph[Payment]
	Bank  *Bank
}

// Waits runs a new thread to its question. It may have run before on another runtime: the bank is emptied.
func (r Undoable) Waits(t *testing.T, rt superstep.Runtime) *superstep.Thread[Payment] {
	t.Helper()
	r.Bank.Empty()
	th := r.Graph.Thread(rt, graphtest.ThreadID(t))
	got, err := th.Invoke(t.Context(), Payment{})
	require.NoError(t, err)
	require.Equal(t, thread.StatusWaiting, got.Status)
	require.Equal(t, []string{"ann", "bob", "cid", "dan"}, r.Bank.Paid())
	return th
}

// NewUndoable is a graph that pays in two supersteps and then asks: ann and bob, cid with an effect that cannot be undone
// when final says so, then a question after paying dan.
func NewUndoable(final bool) Undoable {
	b := NewBank()
	pay, fixed := b.Effect("bank.pay"), b.Effect("bank.fixed")
	if final {
		fixed.Compensate = nil
	}
	g := superstep.NewStateGraph[Payment]("undoable")
	g.AddEffect(pay, fixed)
	g.AddNode("first", Paying(pay, "ann", "bob"))
	g.AddNode("second", Paying(fixed, "cid"))
	g.AddNode("third", func(ctx context.Context, s Payment) (Payment, error) {
		if _, err := pay.Call(ctx, Transfer{To: "dan", Amount: 1}); err != nil {
			return s, err
		}
		yes, err := superstep.Interrupt[bool](ctx, "go on?")
		if err != nil || !yes {
			return s, errors.Join(err, errors.New("no"))
		}
		s.Log.Append("paid dan")
		return s, nil
	})
	g.AddEdge(superstep.Start, "first")
	g.AddEdge("first", "second")
	g.AddEdge("second", "third")
	return Undoable{g.MustCompile(), b}
}
