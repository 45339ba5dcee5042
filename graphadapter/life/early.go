package life

import (
	"slices"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// maxEarly bounds the answers that wait for their questions.
const maxEarly = 100

// isEarly reports whether an answer is for questions of which one was never asked, and there is room to keep the answer for them. Only a
// sender who gets no reply, or has had it, sends it so.
func (r *Run) isEarly(a Answer, silent bool) bool {
	if !silent && !r.stand().Reset || len(a.All()) == 0 || r.Drops() || a.bounds() != nil || len(a.Token) > MaxTokenBytes {
		return false
	}
	if len(r.State.Early) >= maxEarly || r.earlyBytes()+replyBytes(a) > graphadapter.MaxKeptBytes {
		return false
	}
	return !r.stand().changing() && slices.ContainsFunc(a.All(), func(one pregel.Answer) bool { return r.neverAsked(one.QuestionID) })
}

func (s *State) earlyBytes() int {
	size := 0
	for _, e := range s.Early {
		size += replyBytes(e.Answer)
	}
	return size
}

// neverAsked reports whether a question is neither open nor answered.
func (r *Run) neverAsked(id string) bool {
	return !slices.ContainsFunc(r.asks(), func(q pregel.OpenQuestion) bool { return q.ID == id }) &&
		!slices.ContainsFunc(r.State.Answered, func(a Answered) bool { return a.Question == id })
}

// keepEarly keeps an answer until its questions are asked. Meanwhile it is shown as one that was not taken, since they may never be.
func (r *Run) keepEarly(a Answer, now time.Time) {
	same := func(e EarlyAnswer) bool { return e.ID == a.ID && sameReply(e.Answer) == sameReply(a) }
	if !slices.ContainsFunc(r.State.Early, same) {
		r.State.Early = append(slices.Clip(r.State.Early), EarlyAnswer{a, now})
	}
	r.look = true
}

// TakeEarly hands over the answers whose questions are all asked by now, oldest first: the host takes them as messages without a reply.
func (r *Run) TakeEarly() (asked []Answer) {
	if stand := r.stand(); len(r.State.Early) == 0 || stand.changing() || stand.Blind {
		return nil
	}
	r.State.Early = slices.DeleteFunc(slices.Clone(r.State.Early), func(e EarlyAnswer) bool {
		if slices.ContainsFunc(e.All(), func(one pregel.Answer) bool { return r.neverAsked(one.QuestionID) }) {
			return false
		}
		asked = append(asked, e.Answer)
		r.State.Refused = slices.DeleteFunc(slices.Clone(r.State.Refused), func(f Refused) bool {
			return f.Question == named(e.Question) && f.At.Equal(e.At)
		})
		return true
	})
	return asked
}
