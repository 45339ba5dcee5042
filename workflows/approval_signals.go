package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/workflows/protocol"
)

const (
	// maxVerifyBytes bounds the answers by signal that are verified at once: the server takes 2 MiB for one activity.
	maxVerifyBytes = 768 << 10
	// maxBacklog bounds what waits to be verified when a run is continued as a new one.
	maxBacklog = 256 << 10
	// verifyTries and verifyPause: signals are stored, so that they outlast a worker that is lost for some time.
	verifyTries = 12
	verifyPause = 5 * time.Second
)

// await adds an answer by signal to those that wait to be verified. The same answer many times waits once.
func (a *approvals) await(req protocol.ResumeRequest, count int) {
	key := sameReply(req)
	if at, known := a.places[key]; known {
		a.waiting[at].Count += count
		return
	}
	if a.places == nil {
		a.places = map[string]int{}
	}
	a.places[key] = len(a.waiting)
	a.waiting = append(a.waiting, protocol.WaitingReply{Request: req, Count: count})
}

// sameReply is equal for answers that are the same but for their ids. Who says to have given them may make them count or
// not.
func sameReply(req protocol.ResumeRequest) string {
	key := req.By + "\x00"
	for _, a := range req.All() {
		key += a.QuestionID + "\x00" + req.TokenFor(a.QuestionID) + "\x00" + string(a.Value) + "\x00"
	}
	return key
}

// takeWaiting takes the first n of those that wait.
func (a *approvals) takeWaiting(n int) []protocol.WaitingReply {
	taken, rest := a.waiting[:n:n], a.waiting[n:]
	a.waiting, a.places = nil, nil
	for _, w := range rest {
		a.await(w.Request, w.Count)
	}
	return taken
}

func (a *approvals) backlog() int {
	size := 0
	for _, w := range a.waiting {
		size += replyBytes(w.Request)
	}
	return size
}

func replyBytes(req protocol.ResumeRequest) int {
	size := len(req.ID) + len(req.By)
	for _, a := range req.All() {
		size += len(a.QuestionID) + len(a.Value) + len(req.TokenFor(a.QuestionID))
	}
	return size
}

// idle reports whether nothing is being verified, or waits to be.
func (a *approvals) idle() bool { return len(a.claims) == 0 && len(a.waiting) == 0 }

// verifySignals verifies the answers by signal, all that wait in one activity as far as they fit.
func (r *run) verifySignals(ctx workflow.Context) {
	for {
		_ = workflow.Await(ctx, func() bool {
			return len(r.approvals.waiting) > 0 && len(r.approvals.claims) == 0 && !r.approvals.closing && !r.inbox.changing()
		})
		if ctx.Err() != nil {
			return // see withdrawAll
		}
		if err := r.verifyWaiting(ctx); err != nil {
			_ = workflow.Sleep(ctx, verifyPause)
		}
		GiveWay(ctx) // to updates, and to the run's being continued as a new one
	}
}

// verifyWaiting verifies the first of those that wait. An error says that nobody could, and that they still wait.
func (r *run) verifyWaiting(ctx workflow.Context) error {
	taken := r.approvals.takeWaiting(r.approvals.batch())
	var all []*verified
	var counted []protocol.WaitingReply
	for _, w := range taken {
		if err := r.refusal(w.Request); err != nil { // somebody else answered meanwhile
			r.refuseWaiting(ctx, w, refusalOf(w.Request.Question, err))
			continue
		}
		v := r.verifies(w.Request)
		if len(v.answers) == 0 {
			continue // the same request by update
		}
		all, counted = append(all, v), append(counted, w)
	}
	if len(all) == 0 {
		return nil
	}
	c := r.claim(all, "a signal")
	defer r.unclaim(ctx, c)
	err := r.verify(ctx, all)
	_ = workflow.Await(ctx, func() bool { return !r.inbox.changing() })
	if r.approvals.tries++; err != nil && r.approvals.tries < verifyTries && ctx.Err() == nil {
		later := r.approvals.takeWaiting(len(r.approvals.waiting))
		for _, w := range append(counted, later...) {
			r.approvals.await(w.Request, w.Count)
		}
		return err
	}
	r.approvals.tries = 0
	defer r.auditRefusals(ctx, false)
	for i, v := range all {
		r.countSignal(ctx, v, counted[i])
	}
	return nil
}

// batch is how many of those that wait are verified at once.
func (a *approvals) batch() int {
	n, size := 0, 0
	for n < len(a.waiting) && n < graphadapter.MaxVerified {
		size += replyBytes(a.waiting[n].Request)
		if n > 0 && size > maxVerifyBytes {
			break
		}
		n++
	}
	return n
}

// countSignal counts an answer by signal, or keeps why it does not count. That it came more than once makes no difference to
// one that does.
func (r *run) countSignal(ctx workflow.Context, v *verified, w protocol.WaitingReply) {
	if err := r.refusal(v.req); err != nil {
		r.refuseWaiting(ctx, w, refusalOf(v.answers[0].QuestionID, err))
		return
	}
	if refused, ok := r.disallowed(v); ok {
		r.refuseWaiting(ctx, w, refused)
		return
	}
	if reply, err := r.count(ctx, v, &r.inbox.signals); err == nil {
		r.inbox.taken.Took(protocol.UpdateResume, v.req.ID, reply)
	}
}

// refuseWaiting keeps why an answer by signal was refused, to be seen.
func (r *run) refuseWaiting(ctx workflow.Context, w protocol.WaitingReply, why protocol.AnswerRefusal) {
	by := why.By
	if by == "" {
		by = named(w.Request.By)
	}
	r.inbox.refuse(protocol.Refused{Question: named(why.Question), By: by, Reason: why.Reason, Code: why.Code, At: workflow.Now(ctx)})
	r.refuseReply(why, w.Count)
}
