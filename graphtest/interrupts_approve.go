package graphtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/thread"
)

// approve asks for an approval where the graph is to be interrupted by one.
func (w *watched) approve(ctx context.Context, path string) error {
	if w.stop != (stop{stopApproves, path}) {
		return nil
	}
	params, err := json.Marshal(map[string]string{"node": path})
	if err != nil {
		return err
	}
	d, err := superstep.Approve(ctx, approval.Action{Tool: interruption, Summary: interruption, Params: params},
		superstep.WithKey(interruption))
	if err == nil && d.Verdict != approval.VerdictApprove {
		err = fmt.Errorf("the interruption was answered with %s", d.Verdict)
	}
	return err
}

// decide answers the first of the open approvals, by as many people as it takes; false when none is open.
func (in *interrupts) decide(ctx context.Context, th *superstep.Thread[any], c *course, open []thread.Question) (
	result superstep.Result[any], found bool, err error) {
	at := slices.IndexFunc(open, func(q thread.Question) bool { return q.Approval != nil })
	if at < 0 {
		return result, false, nil
	}
	q := open[at]
	reply := approval.Reply{Verdict: approval.VerdictApprove}
	if q.Approval.Tool == interruption {
		c.interrupted++
	} else if reply, err = in.reply(c, q); err != nil {
		return result, true, err
	}
	for n := range q.Approval.Need {
		by := fmt.Sprintf("graphtest-%d", n+1)
		opts := []superstep.RequestOption{superstep.WithToken(Token(th.ID(), q, by)), superstep.AskedBy(by), superstep.WithReason(reply.Reason)}
		switch reply.Verdict {
		case approval.VerdictApprove:
			result, err = th.Approve(ctx, q.ID, opts...)
		case approval.VerdictEdit:
			result, err = th.Edit(ctx, q.ID, reply.Params, opts...)
		default:
			result, err = th.Reject(ctx, q.ID, opts...)
		}
		if err != nil || reply.Verdict != approval.VerdictApprove {
			break
		}
	}
	return result, true, err
}

// reply is the answer to an approval of the graph's own.
func (in *interrupts) reply(c *course, q thread.Question) (reply approval.Reply, err error) {
	from := q.Node + " " + canonical([]byte(q.Value))
	answer, err := in.answer(c, q, from)
	if err != nil {
		return reply, err
	}
	c.given[from] = append(c.given[from], answer)
	if json.Unmarshal(answer, &reply.Verdict) == nil {
		return reply, nil
	}
	if err := json.Unmarshal(answer, &reply); err != nil { // or an approval.Decision, which has the same fields
		return reply, fmt.Errorf("the answer %s to the approval %s: give an approval.Verdict, Reply or Decision: %w", answer, q.Value, err)
	}
	return reply, nil
}
