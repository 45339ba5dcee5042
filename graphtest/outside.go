package graphtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// outside is where the effects of one run write: the target of each, which keeps what it guarantees and no more. A
// receipt is what the effect's Do (or its stand-in) returns for the first write of a key.
type outside struct {
	settings *settings
	// own says that the effects reach the test's own outside.
	own bool

	mu      sync.Mutex
	now     time.Duration // it only passes where an effect waits
	flights []flight
	writes  map[string]*write // by effect and key
	made    []*write
	busy    map[string]*sync.Mutex
	// under counts the calls that are being made; quiet tells when there are none.
	under int
	quiet *sync.Cond
}

// write is one key's write.
type write struct {
	effect, key string
	params      string
	receipt     pregel.Value
	times       int
}

// flight is a call that is on its way.
type flight struct {
	at   time.Duration
	land func()
}

func newOutside(s *settings, own bool) *outside {
	o := &outside{settings: s, own: own, writes: map[string]*write{}, busy: map[string]*sync.Mutex{}}
	o.quiet = sync.NewCond(&o.mu)
	return o
}

// call is a write that arrives at its target.
func (o *outside) call(ctx context.Context, effect string, target ledger.Target, do func(context.Context, string, pregel.Value) (pregel.Value, error),
	key string, params pregel.Value) (pregel.Value, error) {
	if o.own {
		return do(ctx, key, params)
	}
	defer o.turn(effect, key)()
	if w := o.known(effect, key); w != nil {
		if target != ledger.TargetKeyed {
			w.times++
		}
		return w.receipt, nil
	}
	receipt, err := do(ctx, key, params)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	w := &write{effect: effect, key: key, params: canonical(params), receipt: receipt, times: 1}
	o.writes[effect+" "+key], o.made = w, append(o.made, w)
	return receipt, nil
}

// turn lets one call of a key after the other arrive.
func (o *outside) turn(effect, key string) (over func()) {
	o.mu.Lock()
	m := o.busy[effect+" "+key]
	if m == nil {
		m = &sync.Mutex{}
		o.busy[effect+" "+key] = m
	}
	o.mu.Unlock()
	m.Lock()
	return m.Unlock
}

// begin and end enclose a call.
func (o *outside) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.under++
}

func (o *outside) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.under--; o.under == 0 {
		o.quiet.Broadcast()
	}
}

func (o *outside) known(effect, key string) *write {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.writes[effect+" "+key]
}

func (o *outside) find(effect, key string) graphadapter.Finding {
	if w := o.known(effect, key); w != nil {
		return graphadapter.Finding{Status: ledger.FindingCommitted, Receipt: w.receipt}
	}
	return graphadapter.Finding{Status: ledger.FindingNotFound}
}

// latency is how long a call is on its way whose worker crashed: longer than it takes to look it up, and within the
// time that an effect gives an earlier call.
const latency = time.Millisecond

func (o *outside) fly(land func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flights = append(o.flights, flight{o.now + latency, land})
}

// wait lets time pass at once: what was on its way arrives.
func (o *outside) wait(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	o.mu.Lock()
	for o.under > 0 {
		o.quiet.Wait()
	}
	o.now += d
	var landing []flight
	o.flights = slices.DeleteFunc(o.flights, func(f flight) bool {
		if f.at <= o.now {
			landing = append(landing, f)
		}
		return f.at <= o.now
	})
	o.under += len(landing) // whoever else waits meanwhile finds them arrived too
	o.mu.Unlock()
	for _, f := range landing {
		f.land()
		o.end()
	}
	return nil
}

// person answers what an effect asks a person: one that waits for calls on their way, and then looks at the books.
func (o *outside) person(q pregel.Question) (pregel.Value, error) {
	var asked taskrun.Reconcile
	if json.Unmarshal(q.Value, &asked) != nil || asked.Kind != "reconcile" {
		return nil, nil
	}
	if o.own {
		return nil, fmt.Errorf("a person is asked about the effect %q (%s): only the built-in outside knows the answer", asked.Effect, asked.Reason)
	}
	if err := o.wait(context.Background(), time.Hour); err != nil {
		return nil, err
	}
	if w := o.known(asked.Effect, asked.Key); w != nil {
		return json.Marshal(map[string]any{"action": "done", "receipt": w.receipt})
	}
	return pregel.Value(`{"action":"repeat"}`), nil
}

// books are the writes as lines without their keys, sorted.
func (o *outside) books() []string {
	_ = o.wait(context.Background(), time.Hour) // it has no other error than that of its context
	o.mu.Lock()
	defer o.mu.Unlock()
	out := []string{}
	for _, w := range o.made {
		for range w.times {
			out = append(out, w.effect+" "+w.params)
		}
	}
	slices.Sort(out)
	return out
}

// difference says what two sorted lists do not share.
func difference(want, got []string) string {
	var out []string
	for len(want)+len(got) > 0 {
		switch {
		case len(want) > 0 && len(got) > 0 && want[0] == got[0]:
			want, got = want[1:], got[1:]
		case len(got) == 0 || len(want) > 0 && want[0] < got[0]:
			out, want = append(out, "missing: "+want[0]), want[1:]
		default:
			out, got = append(out, "one too many: "+got[0]), got[1:]
		}
	}
	return strings.Join(out, "; ")
}

// canonical is a JSON value with its keys sorted.
func canonical(raw pregel.Value) string {
	var v any
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return string(raw)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(out)
}
