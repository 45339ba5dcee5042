package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"superstep.dev/thread"
)

func TestAnswersThatAreRefused(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	threadID := r.begin("asks", map[string]string{})
	view := r.wait(threadID, thread.StatusWaiting)
	require.Len(t, view.Questions, 2)
	colour, number := view.Questions[0], view.Questions[1]
	if colour.Node != "colour" {
		colour, number = number, colour
	}

	_, err := r.answer(threadID, number.ID, "many")
	require.ErrorIs(t, err, thread.ErrBadInput, "another type than was asked for")
	_, err = r.answer(threadID, "q-none", 3)
	require.ErrorIs(t, err, thread.ErrNotFound, "no such question")
	_, err = r.answer("no-such-thread", number.ID, 3)
	require.ErrorIs(t, err, thread.ErrNotFound, "no such thread")
	_, err = r.answer(threadID, "", 3)
	require.ErrorIs(t, err, thread.ErrBadInput, "which of the two?")
	require.Len(t, r.wait(threadID, thread.StatusWaiting).Questions, 2, "nothing was taken")

	first := thread.ResumeRequest{Thread: threadID, Question: number.ID, Value: encode(t, 3), By: "ann", ID: "request-1"}
	reply, err := r.client.Resume(t.Context(), first)
	require.NoError(t, err)
	require.Equal(t, thread.ResumeReply{Thread: threadID, Question: number.ID, Node: "number", Accepted: true}, reply)
	reply, err = r.client.Resume(t.Context(), first)
	require.NoError(t, err, "the same request sent twice is one")
	require.Equal(t, thread.ResumeReply{Thread: threadID, Question: number.ID, Node: "number", Repeated: true}, reply)
	_, err = r.answer(threadID, colour.ID, strings.Repeat("x", 2<<20))
	require.ErrorIs(t, err, thread.ErrBadInput, "refused before it is sent")
	_, err = r.answer(threadID, number.ID, 4)
	require.ErrorIs(t, err, thread.ErrAnswerRefused)
	require.ErrorContains(t, err, "answered by ann at ")

	_, err = r.answer(threadID, colour.ID, "blue")
	require.NoError(t, err)
	r.wait(threadID, thread.StatusFinished)
	require.ElementsMatch(t, []string{"blue", "3"}, value[[]string](r, threadID, "log"))
	_, err = r.answer(threadID, colour.ID, "red")
	require.ErrorIs(t, err, thread.ErrAnswerRefused, "the run is over")
}

// An answer by signal is held to the same checks. Nobody is told at once, but the run shows it.
func TestAnswersBySignal(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	threadID := r.begin("asks", map[string]string{})
	questions := map[string]string{}
	for _, q := range r.wait(threadID, thread.StatusWaiting).Questions {
		questions[q.Node] = q.ID
	}
	r.signal(threadID, questions["number"], "many") // refused: another type
	r.signal(threadID, questions["number"], 5)
	r.signal(threadID, questions["number"], 6) // refused: answered
	r.signal(threadID, questions["colour"], "blue")
	r.wait(threadID, thread.StatusFinished)
	require.ElementsMatch(t, []string{"blue", "5"}, value[[]string](r, threadID, "log"))
}

// With no worker an update cannot be taken, and says so; a signal is stored, and taken when a worker is back.
func TestAnAnswerBySignalOutlastsAllWorkers(t *testing.T) {
	r := newRig(t)
	r.payments()
	worker := r.refundWorker("worker")
	threadID := r.begin("refund", map[string]string{"order_id": "o-7"})
	q := r.asked(threadID)
	r.kill(worker)

	r.exits(6, r.superstep("resume", threadID, q.ID, "--value", "true"))
	r.exits(0, r.superstep("resume", threadID, q.ID, "--value", "true", "--signal"))
	r.nothingMoved()
	r.refundWorker("worker-2")
	r.wait(threadID, thread.StatusFinished)
	r.refundedOnce("o-7", 25_000)
}

func (r *rig) signal(threadID, question string, value any) {
	r.t.Helper()
	_, err := r.client.Resume(r.t.Context(), thread.ResumeRequest{Thread: threadID, Question: question,
		Value: encode(r.t, value), By: "ann", Signal: true})
	require.NoError(r.t, err)
}
