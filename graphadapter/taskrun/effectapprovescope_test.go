package taskrun

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// TestEffectsAskInEveryScope: calls inside tasks, side by side, and under a thread-wide key ask by themselves.
func TestEffectsAskInEveryScope(t *testing.T) {
	p := newPaying(t)
	p.deploy()
	var receipts []pregel.Value
	effects := p.g.Effects["payments.refund"]
	p.g = oneNode(calling(func(ctx context.Context, t *TaskRun) error {
		var all []*Pending
		for range 2 {
			all = append(all, t.MemoGo(ctx, "side", "", func(ctx context.Context) (pregel.Value, error) {
				inner, _ := TaskFrom(ctx)
				return inner.Effect(ctx, "payments.refund", pregel.Value(p.proposed), graphadapter.CallOptions{})
			}))
		}
		wide, err := t.Effect(ctx, "payments.refund", pregel.Value(p.proposed), graphadapter.CallOptions{Key: "once", ThreadWide: true})
		for _, one := range append(all, nil)[:2] {
			r, failed := one.Get(ctx)
			receipts, err = append(receipts, r), errors.Join(err, failed)
		}
		receipts = append(receipts, wide)
		return err
	}), effects)
	var out pregel.Outcome
	attempt := func() error {
		task := payTask()
		task.Answers = p.answers
		receipts = nil
		var err error
		out, err = RunAttempt(t.Context(), p.g, task, Env{Thread: "r-7", Journal: p.journal, Use: allow, Alone: true})
		return err
	}
	for left := 3; left > 0; left-- {
		if err := attempt(); err != nil || len(out.Questions) != left {
			t.Fatalf("%v, %d questions, want %d", err, len(out.Questions), left)
		}
		q := out.Questions[left/2] // in any order
		var a approval.Action
		if err := json.Unmarshal(q.Approval, &a); err != nil {
			t.Fatal(err)
		}
		p.says(q, a, approval.VerdictApprove, "ann", "")
	}
	if err := attempt(); err != nil || len(out.Questions) != 0 || len(p.bank.writes) != 3 || len(p.sent) != 3 {
		t.Errorf("%v, %d questions, receipts %s, %d writes", err, len(out.Questions), receipts, len(p.bank.writes))
	}
}

// TestOldLedgersDecode: entries that were made before there were approvals.
func TestOldLedgersDecode(t *testing.T) {
	stored := pregel.Value(`{"version":1,"entries":[{"key":"k","name":"pay","kind":"effect","state":"committed","params_hash":"h","result":1,"attempts":1}]}`)
	entries, err := graphadapter.DecodeLedger(stored)
	if err != nil || len(entries) != 1 || entries[0].Approved != nil || entries[0].SameParams("h") != nil {
		t.Fatalf("%v, %+v", err, entries)
	}
	again, err := graphadapter.EncodeLedger(entries)
	if err != nil || string(again) != string(stored) {
		t.Errorf("%v, %s", err, again)
	}
}
