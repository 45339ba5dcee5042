package life

import (
	"cmp"
	"fmt"
	"time"

	"superstep.dev/graphadapter"
)

const (
	// maxVerifyBytes bounds the replies that are verified at once: the server takes 2 MiB for one activity.
	maxVerifyBytes = 768 << 10
	// maxBacklog bounds what waits to be verified when a run is continued as a new one.
	maxBacklog = 256 << 10
	// verifyTries: messages are stored, so that they outlast a worker that is lost for some time.
	verifyTries = 12
)

// await adds an answer to the answers that wait to be verified. The same answer many times waits once.
func (r *Run) await(a Answer, count int) {
	key := sameReply(a)
	if r.places == nil {
		r.places = map[string]int{}
		for i, w := range r.Replies {
			r.places[sameReply(w.Request)] = i
		}
	}
	if at, known := r.places[key]; known {
		r.Replies[at].Count += count
		return
	}
	r.places[key] = len(r.Replies)
	r.Replies = append(r.Replies, WaitingReply{Request: a, Count: count})
}

// takeWaiting takes the first n answers that wait.
func (r *Run) takeWaiting(n int) []WaitingReply {
	taken := r.Replies[:n:n]
	r.Replies, r.places = append([]WaitingReply(nil), r.Replies[n:]...), nil
	return taken
}

// Proving reports whether a gate is being asked about something: who asked for it has no outcome yet.
func (r *Run) Proving() bool { return len(r.claims) > 0 || r.proving > 0 }

// Claiming reports whether replies to approvals are being verified.
func (r *Run) Claiming() bool { return len(r.claims) > 0 }

// Verifies reports whether replies wait to be verified, and nothing is in the way.
func (r *Run) Verifies() bool {
	return len(r.Replies) > 0 && len(r.claims) == 0 && !r.stand().changing()
}

// Batch takes as many of the replies that wait as a gate is asked about at once. A turn that asks nothing has found none that
// could still count. [Run.Ruled] leaves Err with a turn that no gate could be asked about: its replies wait on, for a while.
func (r *Run) Batch(now time.Time) Turn {
	var all []*verified
	var waits []WaitingReply
	for _, w := range r.takeWaiting(r.batch()) {
		if err := r.refusal(w.Request); err != nil { // somebody else answered meanwhile
			r.refuseWaiting(w, rulingOf(w.Request.Question, err), now)
			continue
		}
		v := r.verifies(w.Request)
		if len(v.answers) == 0 {
			continue // the same request, of somebody who waits for the reply
		}
		all, waits = append(all, v), append(waits, w)
	}
	t := Turn{silent: true}
	if len(all) > 0 {
		t.Verify = r.verification(all, waits, "a signal")
	}
	return r.told(t)
}

// batch is how many of the answers that wait are verified at once.
func (s *State) batch() int {
	n, size := 0, 0
	for n < len(s.Replies) && n < graphadapter.MaxVerified {
		size += replyBytes(s.Replies[n].Request)
		if n > 0 && size > maxVerifyBytes {
			break
		}
		n++
	}
	return n
}

// ruledBatch counts the replies of a batch, or keeps why they do not count. That one came more than once makes no difference to
// one that does.
func (r *Run) ruledBatch(t Turn, failed error, now time.Time) Turn {
	v := t.Verify
	t.Verify = nil
	if r.verifying++; failed != nil && r.verifying < verifyTries {
		for _, w := range append(v.waits, r.takeWaiting(len(r.Replies))...) {
			r.await(w.Request, w.Count)
		}
		t.Err = failed
		return r.told(t)
	}
	r.verifying = 0
	for i, one := range v.all {
		if err := r.refusal(one.req); err != nil {
			r.refuseWaiting(v.waits[i], rulingOf(one.answers[0].QuestionID, err), now)
			continue
		}
		if refused, ok := r.disallowed(one); ok {
			r.refuseWaiting(v.waits[i], refused, now)
			continue
		}
		if reply, err := r.count(one, now); err == nil && !reply.Repeated {
			r.took(one.req, reply)
		}
	}
	r.flush(now, false)
	return r.told(t)
}

// refuseWaiting keeps why a reply that nobody waits for was refused, to be seen.
func (r *Run) refuseWaiting(w WaitingReply, why Ruling, now time.Time) {
	r.noteRefused(Refused{Question: named(why.Question), By: cmp.Or(why.By, named(w.Request.By)), Reason: why.Reason, Code: why.Code}, now)
	r.refuseReply(why, w.Count)
}

// beginReply takes in an answer to approvals: a gate is to be asked, at once, or together with others that nobody waits for.
func (r *Run) beginReply(t Turn, a Answer, _ time.Time) Turn {
	if t.silent {
		r.await(a, 1)
		return r.told(t)
	}
	t.Verify = r.verification([]*verified{r.verifies(a)}, nil, a.By)
	return r.told(t)
}

// ruledOn says what is missing when not each answer got a ruling: then none of them counts.
func ruledOn(reply graphadapter.VerifyReply, all []*verified) error {
	if len(reply.Rulings) != len(all) {
		return fmt.Errorf("the gate ruled on %d of %d requests", len(reply.Rulings), len(all))
	}
	for i, v := range all {
		if len(reply.Rulings[i]) != len(v.answers) {
			return fmt.Errorf("the gate ruled on %d of %d answers", len(reply.Rulings[i]), len(v.answers))
		}
	}
	return nil
}
