package superstep_test

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"superstep.dev"
)

// transfer and slip are the parameters and the receipt of a bank's one write.
type transfer struct {
	To     string `json:"to"`
	Amount int64  `json:"amount"`
}

type slip struct {
	ID string `json:"id"`
}

// till is an outside that counts what it is asked. It forgets a transfer that is taken back.
type till struct {
	mu    sync.Mutex
	made  map[string]transfer // by key
	slips int
	// calls are all that was asked, in order: "pay ann", "find ann", "take back ann".
	calls []string
	// fail, when set, is asked before each call, by its name in calls.
	fail func(call string) error
	// after, when set, is asked when a call is through: its error is what the caller gets.
	after func(call string) error
	// undo are the keys of the compensations that were made.
	undo map[string]bool
}

func newTill() *till { return &till{made: map[string]transfer{}, undo: map[string]bool{}} }

func (b *till) call(what string) error {
	b.mu.Lock()
	b.calls = append(b.calls, what)
	fail := b.fail
	b.mu.Unlock()
	if fail != nil {
		return fail(what)
	}
	return nil
}

func (b *till) through(what string) error {
	b.mu.Lock()
	after := b.after
	b.mu.Unlock()
	if after != nil {
		return after(what)
	}
	return nil
}

// failing makes calls fail from now on as fail says.
func (b *till) failing(fail, after func(call string) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail, b.after = fail, after
}

func (b *till) pay(_ context.Context, key string, p transfer) (slip, error) {
	if err := b.call("pay " + p.To); err != nil {
		return slip{}, err
	}
	b.mu.Lock()
	if _, before := b.made[key]; !before {
		b.made[key] = p
		b.slips++
	}
	s := slip{ID: fmt.Sprintf("s-%d", b.slips)}
	b.mu.Unlock()
	return s, b.through("pay " + p.To)
}

func (b *till) find(_ context.Context, key string, p transfer) (superstep.Finding[slip], error) {
	if err := b.call("find " + p.To); err != nil {
		return superstep.Finding[slip]{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, there := b.made[key]; there {
		return superstep.Finding[slip]{Status: superstep.FindingCommitted, Receipt: slip{ID: "found"}}, nil
	}
	return superstep.Finding[slip]{Status: superstep.FindingNotFound}, nil
}

// takeBack undoes what was paid under a key that it does not get: by the parameters, as a bank would by the receipt.
func (b *till) takeBack(_ context.Context, key string, p transfer, _ slip) error {
	if err := b.call("take back " + p.To); err != nil {
		return err
	}
	b.mu.Lock()
	for k, t := range b.made {
		if t == p && !b.undo[key] {
			delete(b.made, k)
			b.undo[key] = true
			break
		}
	}
	b.mu.Unlock()
	return b.through("take back " + p.To)
}

// asked returns the calls so far.
func (b *till) asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls)
}

// paid returns to whom money was paid that was not taken back.
func (b *till) paid() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := []string{}
	for _, t := range b.made {
		out = append(out, t.To)
	}
	slices.Sort(out)
	return out
}

// effect is the bank's write as an effect of that name.
func (b *till) effect(name string) *superstep.Effect[transfer, slip] {
	return &superstep.Effect[transfer, slip]{Name: name, Target: superstep.TargetKeyed, Do: b.pay, Lookup: b.find, Compensate: b.takeBack}
}

// payment is a state of graphs that pay.
type payment struct {
	Log superstep.List[string] `json:"log"`
}

// paying is a node that pays to each of those, one after the other.
func paying(e *superstep.Effect[transfer, slip], to ...string) func(context.Context, payment) (payment, error) {
	return func(ctx context.Context, s payment) (payment, error) {
		for _, name := range to {
			if _, err := e.Call(ctx, transfer{To: name, Amount: 1}); err != nil {
				return s, err
			}
			s.Log.Append("paid " + name)
		}
		return s, nil
	}
}
