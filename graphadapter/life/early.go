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
	return !r.stand().changing() && r.State.hasUnasked(a, r.asks())
}

func (s *State) earlyBytes() int {
	size := 0
	for _, e := range s.Early {
		size += replyBytes(e.Answer)
	}
	return size
}

// hasUnasked reports whether an answer names a question that is neither open nor answered.
func (s *State) hasUnasked(a Answer, open []pregel.OpenQuestion) bool {
	return slices.ContainsFunc(a.All(), func(one pregel.Answer) bool {
		return !slices.ContainsFunc(open, func(q pregel.OpenQuestion) bool { return q.ID == one.QuestionID }) &&
			!slices.ContainsFunc(s.Answered, func(a Answered) bool { return a.Question == one.QuestionID })
	})
}

// keepEarly keeps an answer until its questions are asked. Meanwhile it is shown as one that was not taken, since they may never be.
func (s *State) keepEarly(a Answer, now time.Time) {
	same := func(e EarlyAnswer) bool { return e.ID == a.ID && sameReply(e.Answer) == sameReply(a) }
	if !slices.ContainsFunc(s.Early, same) {
		s.Early = append(slices.Clip(s.Early), EarlyAnswer{a, now})
	}
}

// TakeEarly hands over the answers whose questions are all asked by now, oldest first: the host takes them as messages without a reply.
func (r *Run) TakeEarly() (asked []Answer) {
	if stand := r.stand(); len(r.State.Early) == 0 || stand.changing() || stand.Blind {
		return nil
	}
	r.State.Early = slices.DeleteFunc(slices.Clone(r.State.Early), func(e EarlyAnswer) bool {
		if r.State.hasUnasked(e.Answer, r.asks()) {
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
