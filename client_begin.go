package superstep

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// begin continues the thread's last run, or starts its first one.
func (c *Client) begin(ctx context.Context, g *graphadapter.Graph, req StartRequest) (ThreadView, error) {
	last, err := c.lastRun(ctx, req.Thread)
	if err != nil {
		return ThreadView{}, err
	}
	in := protocol.GraphInput{Graph: req.Graph, Input: protocol.Input(inputOf(req)), Asked: askedOf(req.By, req.Reason, req.Token)}
	switch {
	case last != nil && req.NewThread:
		return ThreadView{}, notNew(req)
	case last == nil && req.Checkpoint != "":
		return ThreadView{}, noCheckpoint(req.Graph, req.Thread, req.Checkpoint)
	case last == nil && req.Input == nil && req.Control == nil:
		return ThreadView{}, notBegun(req)
	case last == nil:
		return c.launch(ctx, req, in, nil)
	case last.graph != req.Graph && last.graph != "": // "" is of a run that named none
		return ThreadView{}, &Error{Kind: ErrBadInput, Graph: req.Graph, Thread: req.Thread,
			Message: fmt.Sprintf("thread %q belongs to graph %q, not to %q", req.Thread, last.graph, req.Graph)}
	case last.open:
		return c.beginOpen(ctx, c.graphOr(g, last), req, last)
	}
	g = c.graphOr(g, last)
	in.Replay = req.Checkpoint != ""
	if _, err := c.carryOver(ctx, last, &in); err != nil {
		return ThreadView{}, err
	}
	if req.Checkpoint != "" {
		at, err := c.stateAt(ctx, g, last, req.Checkpoint, pregel.UseFor(inputOf(req)))
		if err != nil {
			return ThreadView{}, err
		}
		refusable := req.Resume != nil || req.Control != nil // by the run itself
		if refusable || !at.branches && !req.branch {
			in.Newest = in.State
		}
		in.State = at.state
	}
	if err := tryInput(g, last, in); err != nil {
		return ThreadView{}, err
	}
	if req.governed {
		if err := c.mayBegin(ctx, last, in, req); err != nil {
			return ThreadView{}, err
		}
	}
	return c.launch(ctx, req, in, last)
}

// mayBegin refuses what the rules for control do, before a run begins that would.
func (c *Client) mayBegin(ctx context.Context, last *lastRun, in protocol.GraphInput, req StartRequest) error {
	b := life.Beginning{Failed: in.Suspect, Checkpoint: req.Checkpoint, Input: pregel.Input(in.Input)}
	if in.Input.Resume != nil {
		b.Answered = []string{""}
	}
	for _, op := range b.Ops(false) {
		_, err := c.admit(ctx, protocol.AdmitRequest{Graph: last.graph, Control: controlCheck(last, op, asker{by: req.By, token: req.Token})})
		if err != nil {
			return err
		}
	}
	return nil
}

func inputOf(req StartRequest) pregel.Input {
	return pregel.Input{Value: req.Input, Resume: req.Resume, Control: req.Control}
}

func notNew(req StartRequest) error {
	return &Error{Kind: ErrBadInput, Graph: req.Graph, Thread: req.Thread,
		Message: fmt.Sprintf("there is a thread %q already, and a new one was asked for", req.Thread), Do: "Look at it, or take another id",
		Command: []string{"show", req.Thread}}
}

func notBegun(req StartRequest) error {
	return &Error{Kind: ErrNotFound, Graph: req.Graph, Thread: req.Thread,
		Message: fmt.Sprintf("there is no thread %q to continue", req.Thread), Do: "Give it input to begin it"}
}

// tryInput refuses answers and commands that the engine would refuse at once: a run of its own that fails would be the
// thread's last.
func tryInput(g *graphadapter.Graph, last *lastRun, in protocol.GraphInput) error {
	if in.Input.Resume == nil && in.Input.Control == nil || in.State == nil {
		return nil
	}
	program, thread, err := readThread(in.Spec, in.State, reducersOf(g))
	if err != nil {
		return &Error{Kind: ErrBadInput, Graph: last.graph, Thread: last.thread, Message: "the thread's state cannot be read", Cause: err}
	}
	if err := checkResume(program.OpenQuestions(thread), last.graph, last.thread, in.Input.Resume); err != nil {
		return err
	}
	if g == nil && len(unreadable(in.Spec)) > 0 {
		return nil // the run itself will see
	}
	_, err = program.Start(thread, pregel.Input(in.Input), pregel.Options{RecursionLimit: graphadapter.DefaultRecursionLimit}, in.Replay, nil)
	return refusal(last.graph, last.thread, err)
}

// beginOpen gives a run that stands still something new to do; one that is under way refuses.
func (c *Client) beginOpen(ctx context.Context, g *graphadapter.Graph, req StartRequest, last *lastRun) (ThreadView, error) {
	invoke := protocol.InvokeRequest{ID: uuid.NewString(), Input: protocol.Input(inputOf(req)), Settings: settingsOf(req),
		Asked: askedOf(req.By, req.Reason, req.Token)}
	if req.Checkpoint != "" {
		at, err := c.stateAt(ctx, g, last, req.Checkpoint, pregel.UseFor(inputOf(req)))
		if err != nil {
			return ThreadView{}, err
		}
		invoke.State = at.state
	}
	if err := c.update(ctx, last, invoke.ID, protocol.UpdateInvoke, invoke, nil); err != nil {
		return ThreadView{}, err
	}
	return c.goingOn(last), nil
}

// set makes a request one with the settings of an earlier run.
func (r *StartRequest) set(s *protocol.Settings) {
	if s == nil {
		return
	}
	r.RecursionLimit, r.InterruptBefore, r.InterruptAfter = s.Options.RecursionLimit, s.Options.InterruptBefore, s.Options.InterruptAfter
	r.Durability, r.Fused, r.MaxConcurrency = Durability(s.Durability), s.Fused, s.MaxConcurrency
	r.KeepOpen, r.IdleTimeout = s.KeepOpen != 0, time.Duration(max(s.KeepOpen, 0))*time.Millisecond
	r.Hold, r.Requester = s.Hold, s.Requester
	r.StepTimeout, r.Context = time.Duration(s.StepTimeout)*time.Millisecond, json.RawMessage(s.Context)
}

func settingsOf(req StartRequest) *protocol.Settings {
	keepOpen := int64(0)
	if req.KeepOpen {
		keepOpen = cmp.Or(req.IdleTimeout.Milliseconds(), -1)
	}
	return &protocol.Settings{
		Options: pregel.Options{RecursionLimit: req.RecursionLimit,
			InterruptBefore: req.InterruptBefore, InterruptAfter: req.InterruptAfter, Branch: req.branch},
		Durability: graphadapter.Durability(req.Durability), Fused: req.Fused, MaxConcurrency: req.MaxConcurrency,
		StepTimeout: req.StepTimeout.Milliseconds(), Context: pregel.Value(req.Context), KeepOpen: keepOpen, Hold: req.Hold, Requester: req.Requester,
		Notices: req.notices,
	}
}

// earlierState is a thread as it starts again from one of its checkpoints.
type earlierState struct {
	state pregel.Value
	// branches says that a run from there begins with a checkpoint of its own.
	branches bool
}

func (c *Client) stateAt(ctx context.Context, g *graphadapter.Graph, last *lastRun, checkpoint string, use pregel.Use) (earlierState, error) {
	var at earlierState
	past, err := c.pastWith(ctx, g, last, checkpoint)
	if err != nil {
		return at, err
	}
	thread, ok := past.At(checkpoint, use)
	if !ok {
		return at, noCheckpoint(last.graph, last.thread, checkpoint)
	}
	program, _ := past.Thread()
	source := thread.Head.Checkpoint.Source
	at.branches = source != pregel.SourceUpdate && source != pregel.SourceFork
	if at.state, err = program.EncodeThread(thread); err != nil {
		return at, &Error{Kind: ErrBadInput, Graph: last.graph, Thread: last.thread, Message: "the checkpoint cannot be stored", Cause: err}
	}
	return at, nil
}
