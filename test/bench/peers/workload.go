package main

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
)

// fields are a run's input, or what a turn adds.
type fields map[string]any

// workload is a piece of work that every way does.
type workload struct {
	name, about string
	// graph is what runs; see graphs.go.
	graph string
	input fields
	// steps is what the field "step" must be at the end; 0 for turns, where it is the turn's number.
	steps int
	// asks says that the run asks a question, which is answered at once; the time is that of both.
	asks bool
	// turn is how many turns a conversation has had when it is measured; 0 for runs of threads of their own.
	turn int
	// turns is how many turns a new conversation takes in one operation, whose figures are those of one turn.
	turns int
	// asked says that it is only done when it is named.
	asked bool
	// atOnce is how many runs are under way together; the time is that of all of them.
	atOnce int
	// kills says that the worker is killed, and the time is that from the kill to the next superstep.
	kills bool
	// ops is how often it is done in a round, of which the median counts.
	ops int
}

const (
	shortSteps = 20
	longSteps  = 200
	fanWidth   = 100
	wideWidth  = 10_000
	firstTurns = 3
	textBytes  = 1 << 10
	callSteps  = 100
	callTexts  = 800 // of 1 KiB each
	largeSteps = 50  // which bring callTexts each, 40 MB together
)

// runNote is the text that a run begins with.
const runNote = "a few words that every step reads"

// text is a thread's text of a number: 1 KiB that no database makes much smaller, and no storage has already. It begins with the
// number, and what follows is drawn.
func text(thread string, n int) string {
	drawn := make([]byte, textBytes)
	_, _ = rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "%s %d", thread, n))).Read(drawn) // it never fails
	return fmt.Sprintf("%08d %s", n, base64.StdEncoding.EncodeToString(drawn))[:textBytes]
}

// texts are some of a thread, from a number on.
func texts(thread string, first, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = text(thread, first+i)
	}
	return out
}

// workloads are all there are; a conversation for each of the turns.
func (o *options) workloads() []*workload {
	chain := func(steps int) fields { return fields{"steps": steps, "note": runNote} }
	out := []*workload{
		{name: "chain-20", about: "20 supersteps that do nothing", graph: chainGraph, input: chain(shortSteps), steps: shortSteps, ops: 5},
		{name: "chain-200", about: "200 supersteps that do nothing", graph: chainGraph, input: chain(longSteps), steps: longSteps, ops: 1},
		{name: "fan", about: "100 Sends and a join", graph: fanGraph, input: chain(fanWidth), steps: fanWidth, ops: 1},
		{name: "sends-10000", about: "10,000 Sends and a join", graph: fanGraph, input: chain(wideWidth), steps: wideWidth, ops: 1},
		{name: "ask", about: "a question, and its answer", graph: askGraph, input: fields{"note": runNote}, steps: 2, asks: true, ops: 5},
	}
	for _, n := range o.turns {
		about := fmt.Sprintf("a turn of 1 KiB in a conversation of %d and more", n)
		out = append(out, &workload{name: fmt.Sprintf("turn-%d", n), about: about, graph: talkGraph, turn: n, ops: 5})
	}
	return append(out,
		&workload{name: "first-turns", about: fmt.Sprintf("a turn of 1 KiB, on average of the first %d of a conversation", firstTurns), graph: talkGraph,
			turns: firstTurns, ops: 5},
		&workload{name: "calls", about: "100 supersteps that read 800 KiB and append a line", graph: callsGraph,
			input: chain(callSteps), steps: callSteps, ops: 1},
		&workload{name: "large", about: "50 supersteps that each append 800 KiB, which comes to 40 MB", graph: largeGraph, input: chain(largeSteps),
			steps: largeSteps, ops: 1},
		&workload{name: "crowd", about: fmt.Sprintf("%d runs of 20 supersteps at once", o.crowd), graph: chainGraph, input: chain(shortSteps),
			steps: shortSteps, atOnce: o.crowd, ops: 1},
		&workload{name: "kill", about: "kill -9 of the worker within a node of 1 s, until the next superstep", graph: slowGraph,
			input: fields{"note": runNote}, kills: true, ops: 1},
		&workload{name: "bytes-of-turns", about: fmt.Sprintf("a turn of 1 KiB, and what it stores, on average of the first %d of a conversation", o.talk),
			graph: talkGraph, turns: o.talk, asked: true, ops: 1},
	)
}

// talks says that it is a conversation, whose runs are turns.
func (w *workload) talks() bool { return w.graph == talkGraph }

// runsCaller is who gives each turn a run of its own.
const runsCaller = "runs"

// calledBy reports whether a kind of caller does a workload: a long one by one of them; a conversation, and what is called with large
// values, with Thread.Invoke.
func (w *workload) calledBy(caller string) bool {
	switch {
	case w.kills:
		return false
	case caller == runsCaller:
		return w.talks() && (w.turn > 1 || w.turns > 0)
	case !w.long():
		return true
	case w.talks(), w.graph == callsGraph: // as a program does that has the graph, which LangGraph's callers do
		return caller == "thread"
	}
	return caller == "client"
}

// inputOf is what a run of a workload, or a turn, begins with.
func (w *workload) inputOf(thread string, turn int) fields {
	switch {
	case w.talks():
		return fields{"texts": texts(thread, turn, 1)}
	case w.graph == callsGraph:
		return fields{"steps": w.steps, "texts": texts(thread, 0, callTexts)}
	}
	return w.input
}

// step is what the field of that name has at the end.
func (w *workload) step(turn int) int {
	if w.talks() {
		return turn
	}
	return w.steps
}

// long says that a workload takes so long that only one kind of caller does it.
func (w *workload) long() bool {
	return w.turn > 1 || w.turns > 0 || w.atOnce > 0 || w.graph == largeGraph || w.steps >= callSteps && w.graph != fanGraph || w.steps >= wideWidth
}
