package serve

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
)

// Clients know a question by 32 hexadecimal digits, and some tell answers by id from one plain answer by just that: a graph of
// LangGraph's own does, of which a graph of this server is a node. What the thread calls "q-" and eight digits are the last of them.
const (
	questionBegin  = "q-"
	questionDigits = 32
	questionOwn    = 8
)

var questionZeros = strings.Repeat("0", questionDigits-questionOwn)

// questionOut is the id of a question as clients see it.
func questionOut(id string) string {
	if own, ok := strings.CutPrefix(id, questionBegin); ok && len(own) == questionOwn {
		return questionZeros + own
	}
	return id
}

// questionIn is the thread's id of a question, by either of them.
func questionIn(id string) string {
	if own, ok := strings.CutPrefix(id, questionZeros); ok && len(own) == questionOwn {
		return questionBegin + own
	}
	return id
}

// questionsOut is a list of questions, as nodes and streams have it, with the ids that clients see. Anything else stays.
func questionsOut(v json.RawMessage) json.RawMessage {
	var all []object
	if json.Unmarshal(v, &all) != nil || all == nil {
		return v
	}
	for _, q := range all {
		if id := q.text("id"); id != "" {
			q["id"] = raw(questionOut(id))
		}
	}
	return raw(all)
}

// valuesOut are values as a stream has them, with the messages and questions that clients see.
func valuesOut(v json.RawMessage, conversations map[string]bool) json.RawMessage {
	v = shownJSON(v, conversations)
	var values object
	if json.Unmarshal(v, &values) != nil || !given(values["__interrupt__"]) {
		return v
	}
	values["__interrupt__"] = questionsOut(values["__interrupt__"])
	return raw(values)
}

// isQuestion reports whether a text looks like the id of a question, as clients or threads write one.
func isQuestion(id string) bool {
	return strings.HasPrefix(id, questionBegin) || len(id) == questionDigits && strings.Trim(id, "0123456789abcdef") == ""
}

// resumeOf is an answer, or answers by the ids of their questions. An id may be of no question of the thread: the run finds that out.
func resumeOf(v json.RawMessage) *pregel.Resume {
	var byID object
	if json.Unmarshal(v, &byID) != nil || byID == nil { // {} answers no question, as in LangGraph
		return &pregel.Resume{Scalar: pregel.Value(v)}
	}
	answers := map[string]pregel.Value{}
	for id, value := range byID {
		if !isQuestion(id) {
			return &pregel.Resume{Scalar: pregel.Value(v)}
		}
		answers[questionIn(id)] = pregel.Value(value)
	}
	return &pregel.Resume{ByID: answers}
}

// takesNull reports whether a question whose answers have that schema takes null.
func takesNull(schema json.RawMessage) bool {
	if len(schema) == 0 {
		return true
	}
	var of jsonschema.Schema
	if json.Unmarshal(schema, &of) != nil {
		return false
	}
	resolved, err := of.Resolve(nil)
	return err == nil && resolved.Validate(nil) == nil
}

// What a graph of LangGraph's own says in the configuration when it comes back to a node that is a graph of this server: that the node
// goes on, though it is given its input once more, and what was answered to which question.
const (
	keyResuming  = "__pregel_resuming"
	keyResumeMap = "__pregel_resume_map"
)

// goOn makes a request of such a graph one that goes on where the thread stands: its input was taken in before. A thread that has no
// state yet takes the input.
func (s *Server) goOn(ctx context.Context, under string, r *runRequest) error {
	var resuming bool
	if v := r.Config.Configurable[keyResuming]; !given(v) || json.Unmarshal(v, &resuming) != nil || !resuming || r.Command != nil {
		return nil
	}
	v, err := s.client.State(ctx, thread.StateRequest{Thread: under})
	if errors.Is(err, thread.ErrNotFound) || err == nil && v.Checkpoint == "" {
		return nil
	}
	if err != nil {
		return err
	}
	r.Input = nil
	// Answers to questions of other threads may be among those.
	var answers object
	if given(r.Config.Configurable[keyResumeMap]) && json.Unmarshal(r.Config.Configurable[keyResumeMap], &answers) != nil {
		return nil
	}
	ours := object{}
	for _, q := range v.Questions {
		if answer, ok := answers[questionOut(q.ID)]; ok {
			ours[q.ID] = answer
		}
	}
	if len(ours) > 0 {
		r.Command = &command{Resume: raw(ours)}
	}
	return nil
}
