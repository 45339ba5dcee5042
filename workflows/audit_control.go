package workflows

import (
	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/trail"
)

// Asked is who asked for a run to begin, and why: it is for the audit.
type Asked struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// From is the thread whose checkpoint the run begins with, "" for its own.
	From string `json:"from,omitempty"`
	// Token proves who asks, where rules want that.
	Token string `json:"token,omitempty"`
	// Proven is what a gate said of the token. The run sets it, whatever is sent.
	Proven *approval.Ruling `json:"proven,omitempty"`
}

func (a *Asked) actor() trail.Actor {
	switch {
	case a == nil:
		return trail.Actor{}
	case a.Proven != nil:
		return trail.Actor{Claimed: a.By, Ruling: *a.Proven}
	}
	return trail.Actor{Claimed: a.By}
}

// token is what proves who asks, "" for nothing.
func (a *Asked) token() string {
	if a == nil {
		return ""
	}
	return a.Token
}

func (a *Asked) name() string {
	if a == nil {
		return ""
	}
	return a.By
}

// provenBy is who asks once a gate has said so; the token is not kept.
func (a *Asked) provenBy(actor trail.Actor) *Asked {
	if a == nil {
		return nil
	}
	known := *a
	known.Token, known.Proven = "", nil
	if actor.Ruling.By != "" {
		known.Proven = &actor.Ruling
	}
	return &known
}

// boundedAsked says what is wrong with who asks.
func boundedAsked(a *Asked) error {
	if a != nil && (len(a.By) > maxNameBytes || len(a.From) > maxNameBytes || len(a.Reason) > maxReasonBytes || len(a.Token) > maxTokenBytes) {
		return refuse(ErrTypeBadUpdate, "who asks has a name of at most %d bytes, a reason of at most %d and a token of at most %d",
			maxNameBytes, maxReasonBytes, maxTokenBytes)
	}
	return nil
}

func (a *Asked) reason() string {
	if a == nil {
		return ""
	}
	return a.Reason
}

// auditBegin notes what it is a recovery of that the thread goes on: nothing for a run that just begins.
func (r *run) auditBegin(ctx workflow.Context, a *Asked, b trail.Beginning) {
	if a != nil {
		b.From, b.Reason = a.From, a.Reason
	}
	for _, e := range trail.Begins(a.actor(), b) {
		r.audit(ctx, e)
	}
}

// auditAnswers notes who answers questions that ask for no approval. It is called before the answers are taken.
func (r *run) auditAnswers(ctx workflow.Context, by trail.Actor, answers []pregel.Answer) {
	open := r.asks()
	for _, a := range answers {
		for _, q := range open {
			if q.ID == a.QuestionID && q.Approval == nil && q.Event == "" {
				r.audit(ctx, trail.Answered(by, q.Question, a.Value))
			}
		}
	}
}
