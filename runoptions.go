package superstep

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsonfit"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// Durability says when a run's progress is stored.
type Durability = graphadapter.Durability

const (
	// DurabilitySync stores the record of each Task and Effect before the node goes on: the default.
	DurabilitySync = graphadapter.DurabilitySync
	// DurabilityAsync runs many supersteps in one activity and stores what they did in the background; after a lost worker the
	// run goes on from what was stored, and effects are looked up.
	DurabilityAsync = graphadapter.DurabilityAsync
	// DurabilityExit stores nothing before that activity ends: for a question, for a failure, or with the run. After a lost
	// worker its supersteps run again, and effects are looked up. A run's history is one checkpoint, in memory too.
	DurabilityExit = graphadapter.DurabilityExit
)

// RunOption shapes one run: until the thread waits, stands still or has ended. The next run of the thread has options of
// its own; answers and retries go on with those of the run that they continue.
type RunOption interface{ applyRun(*runOptions) }

type runOptions struct {
	request runtime.Start
	// context is encoded with the request: an error then names graph and thread.
	context any
	// answers are encoded with the request too.
	answers map[string]any
	// special are options of requests that are no runs, by name: they are refused.
	special []string
}

type runOption func(*runOptions)

func (o runOption) applyRun(r *runOptions) { o(r) }

// ModeOption is what [WithDurability] and [WithFused] return: an option of one run, and of a graph or entrypoint for those
// of its runs that name no durability.
type ModeOption interface {
	RunOption
	CompileOption
}

// WithDurability says when a run's progress is stored. A run that names a durability takes nothing from its graph, so it
// is fused only if it says so; the default of runs and graphs that say nothing is [DurabilitySync]. Graphs used as
// subgraphs, or called from a node, run in the mode of the run that they are part of.
func WithDurability(d Durability) ModeOption { return durabilityOption{d} }

// WithFused runs consecutive supersteps of a run in one activity, in sync mode too: each is stored by one heartbeat
// before the next begins, which is about five times cheaper than an activity for each task, and its tasks run in one
// worker. Async and exit mode do so anyway. In memory it changes nothing.
func WithFused() ModeOption { return fusedOption{} }

type durabilityOption struct{ d Durability }

func (d durabilityOption) applyRun(r *runOptions) { r.request.Durability = d.d }

func (d durabilityOption) applyCompile(c *compileOptions) { c.durability = d.d }

func (d durabilityOption) applyEntrypoint(e *entrypointOptions) { d.applyCompile(&e.compile) }

type fusedOption struct{}

func (fusedOption) applyRun(r *runOptions) { r.request.Fused = true }

func (fusedOption) applyCompile(c *compileOptions) { c.fused = true }

func (f fusedOption) applyEntrypoint(e *entrypointOptions) { f.applyCompile(&e.compile) }

// WithRecursionLimit bounds the supersteps of the run: a run of fresh input may execute that many and fails at the
// next, so a chain of N nodes needs N+1. The default is 10,007 (LangGraph's).
func WithRecursionLimit(n int) RunOption {
	return runOption(func(r *runOptions) { r.request.RecursionLimit = n })
}

// Budget is what a thread may spend; 0 is no limit. See [WithBudget].
type Budget = thread.Budget

// WithBudget gives the run's thread a budget, for this run and the turns that follow: tokens, money and writes that nodes note
// with [Spend], [Effect] calls that the outside has, time at work and supersteps, those of subgraphs included. Counted is what
// the thread has spent since it first had a budget; what was spent stays spent, whatever checkpoint it goes on from.
//
// When a limit is reached, the run stops behind the superstep under way and asks for more, with a question of the node
// "budget": the answer is an object with how much more of each (tokens, usd, writes, seconds, supersteps), on top of what was
// spent, or {"stop": true}, with which the run fails as [thread.StatusOutOfBudget]; a retry asks again. Whatever answers
// questions answers this one, and rules for control hold it as they do any. A budget below what was spent asks at once.
//
// A later run with WithBudget replaces the limits, one without goes on with those that there are. A zero Budget counts and
// limits nothing. [thread.ErrBadInput] refuses amounts below 0 and above 1e15.
func WithBudget(b Budget) RunOption {
	return runOption(func(r *runOptions) { r.request.Budget = &b })
}

// WithMaxConcurrency bounds the tasks of the run that are under way at once; they begin in task order. 0, the default,
// means no bound but the runtime's own.
func WithMaxConcurrency(n int) RunOption {
	return runOption(func(r *runOptions) { r.request.MaxConcurrency = n })
}

// WithStepTimeout bounds each superstep's wall clock, retries and their waits included; 0, the default, means no bound.
// A superstep out of time fails the run with a [*RunError]: its tasks are cancelled, what its finished ones
// wrote is kept, and the thread can be continued.
func WithStepTimeout(d time.Duration) RunOption {
	return runOption(func(r *runOptions) { r.request.StepTimeout = d })
}

// WithBreakpoints replaces the graph's own breakpoints ([WithInterruptBefore], [WithInterruptAfter]) for this run. Nil
// keeps those of the graph, an empty list means none, and a list with [All] means every node.
func WithBreakpoints(before, after []string) RunOption {
	return runOption(func(r *runOptions) {
		r.request.InterruptBefore, r.request.InterruptAfter = slices.Clone(before), slices.Clone(after)
	})
}

// FromCheckpoint runs on from an earlier checkpoint of the thread instead of the newest one. What came after it runs
// again, on a branch of its own, and stays in the thread's history.
func FromCheckpoint(id string) RunOption {
	return runOption(func(r *runOptions) { r.request.Checkpoint = id })
}

// WithContext gives every node and routing function of the run, those of subgraphs included, a value to read with
// [RunContext]: who asks, which tenant, which model (LangGraph's run-scoped context). It encodes as JSON of at most
// 64 KiB, because it goes along with every task. It is no part of the state: a later run of the thread, unless it is an
// answer or a retry, has the context that it is given, or none. Nil gives none.
func WithContext(v any) RunOption {
	return runOption(func(r *runOptions) { r.context = v })
}

// WithKeepOpen keeps the thread's run open on the server when nothing is left to do: the next input goes to it as a turn, which
// costs less than a run of its own, and it goes on for months. It ends, as finished, when it is cancelled, or has had
// nothing to do for idle; 0 is for ever. The thread's next input then begins a run from the state that it left, and once the
// namespace's retention is over and the server has removed the run, the thread anew.
//
// Without this option the first run of a thread ends when it has finished; when [Thread.Invoke] gives a finished thread more input,
// that run is kept open for an hour. A negative idle gives the input a run of its own, which ends. A thread in memory has no such runs.
func WithKeepOpen(idle time.Duration) RunOption {
	return runOption(func(r *runOptions) { r.request.KeepOpen, r.request.IdleTimeout = idle >= 0, idle })
}

// WithHold keeps the run open when it fails: it stands still, with the status of its failure, until [Thread.Retry] lets it
// go on in the same run, new input or an update of its state gives it something else to do, or it is cancelled. Tasks
// that finished do not run again. It takes events and answers meanwhile, which count when it goes on, and no process is
// held. A run whose history is full fails for good all the same, and a retry of it is a new one, as without this option.
func WithHold() RunOption {
	return runOption(func(r *runOptions) { r.request.Hold = true })
}

// WithRequester says on whose behalf the run is, for approvals: a policy may want another person to approve what somebody
// requests, and the requester to have permissions. It is at most 200 bytes, and nobody checks it: say who was proven to
// ask. Answers and retries of the run have the same; a node reads it in [TaskInfo].
func WithRequester(name string) RunOption {
	return runOption(func(r *runOptions) { r.request.Requester = name })
}

func runOptionsOf(opts []RunOption) (out runOptions) {
	for _, o := range opts {
		o.applyRun(&out)
	}
	return out
}

// start returns the options as a request, without the input, or says which of them cannot be taken.
func (o runOptions) start(spec *pregel.Spec, threadID string) (runtime.Start, error) {
	r := o.request
	r.Graph, r.Thread = spec.Name, threadID
	if err := misplaced(spec.Name, threadID, "a run", o.special, nil); err != nil {
		return runtime.Start{}, err
	}
	problem := runtime.StartProblem(o.request, spec)
	if problem == "" && o.context != nil {
		raw, err := jsonfit.Encode(o.context)
		switch {
		case err != nil:
			problem = fmt.Sprintf("the run's context does not encode as JSON: %v", err)
		case len(raw) > protocol.MaxContextBytes:
			problem = fmt.Sprintf("the run's context has %d bytes, the most is %d: give a reference", len(raw), protocol.MaxContextBytes)
		}
		r.Context = json.RawMessage(raw)
	}
	if problem != "" {
		return runtime.Start{}, &thread.Error{Kind: thread.ErrBadInput, Graph: r.Graph, Thread: r.Thread, Message: problem}
	}
	return r, nil
}

// newStart checks and encodes what a run begins with.
func newStart(g *graphadapter.Graph, thread string, input any, o runOptions) (runtime.Start, error) {
	r, err := o.start(g.Spec, thread)
	if err != nil {
		return runtime.Start{}, err
	}
	if r.Resume, err = encodeAnswers(g, thread, o.answers); err != nil {
		return runtime.Start{}, err
	}
	if r.Input, err = encodeInput(g.Spec.Name, input); err != nil {
		return runtime.Start{}, err
	}
	if r.Input != nil && g.CheckInput != nil {
		if err := g.CheckInput(r.Input); err != nil {
			return runtime.Start{}, err
		}
		r.Checked = true
	}
	return r, nil
}

func encodeAnswers(g *graphadapter.Graph, threadID string, byID map[string]any) (*pregel.Resume, error) {
	if len(byID) == 0 {
		return nil, nil
	}
	out := &pregel.Resume{ByID: make(map[string]pregel.Value, len(byID))}
	for id, answer := range byID {
		raw, err := jsonfit.Encode(answer)
		if err != nil {
			return nil, &thread.Error{Kind: thread.ErrBadInput, Graph: g.Spec.Name, Thread: threadID, Question: id,
				Message: "the answer does not encode as JSON", Cause: err}
		}
		out.ByID[id] = raw
	}
	only, scalar := out.ByID[""]
	switch {
	case scalar && len(byID) > 1:
		return nil, &thread.Error{Kind: thread.ErrBadInput, Graph: g.Spec.Name, Thread: threadID,
			Message: "an answer without a question's id is for the only one that is open: name the questions of all answers"}
	case scalar:
		return &pregel.Resume{Scalar: only}, nil
	}
	return out, nil
}
