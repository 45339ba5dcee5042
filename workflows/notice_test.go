package workflows_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"superstep.dev/approval"
	"superstep.dev/workflows/protocol"
)

// recordingNotifier keeps what it is told, each of it at the second attempt.
type recordingNotifier struct {
	mu    sync.Mutex
	tried map[string]bool
	told  []approval.Notice
}

// Targets implements approval.Notifier.
func (*recordingNotifier) Targets() []string { return []string{"test"} }

// Notify implements approval.Notifier.
func (n *recordingNotifier) Notify(_ context.Context, _ string, notice approval.Notice) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.tried[notice.ID] {
		if n.tried == nil {
			n.tried = map[string]bool{}
		}
		n.tried[notice.ID] = true
		return errors.New("come again")
	}
	n.told = append(n.told, notice)
	return nil
}

// kinds are those of the notices: a run that ends while one is told hands it on, and it comes again, by the same id.
func (n *recordingNotifier) kinds() (out []approval.Kind) {
	n.mu.Lock()
	defer n.mu.Unlock()
	known := map[string]bool{}
	for _, notice := range n.told {
		if !known[notice.ID] {
			out = append(out, notice.Kind)
		}
		known[notice.ID] = true
	}
	return out
}

// TestNoticesOfAnExpiry: those who are asked hear of the question, of its warning, and that others are asked; they hear of
// none of it twice, and not of what is decided by silence as if somebody had answered.
func TestNoticesOfAnExpiry(t *testing.T) {
	t.Parallel()
	action := within(12_000, approval.SilenceEscalate)
	action.Warn = 11_000 // a warning that comes late, behind what it warns of, is none
	heard := &recordingNotifier{}
	r := newRig(t)
	r.gate, r.notifier = &approval.Gate{Keys: plainKeys{}}, heard
	r.work(paymentGraph(action))
	r.start(r.queue, protocol.GraphInput{Graph: "payment", Input: input(`{}`), Found: &protocol.Found{Notices: true}})
	if log := r.ended(r.queue); log != `["expired","{\"amount\":1000}","end"]` {
		t.Errorf("the run ended with %s", log)
	}
	want := []approval.Kind{approval.KindAsked, approval.KindEscalated, approval.KindExpired, approval.KindWarned, approval.KindWarned}
	var got []approval.Kind
	await(t, "the notices", func() bool {
		got = slices.Sorted(slices.Values(heard.kinds()))
		return slices.Equal(got, want)
	}, func() any { return heard.kinds() })
}
