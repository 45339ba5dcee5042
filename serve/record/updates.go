package record

import (
	"encoding/json"
	"maps"
	"time"

	"go.temporal.io/sdk/workflow"
)

// put creates a thread, or changes its metadata.
type put struct {
	Create   bool                       `json:"create,omitempty"`
	Exists   bool                       `json:"exists,omitempty"` // it may be there
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	// Copy is the thread that this one is made as a copy of, nil for none, and By who wants that.
	Copy *Thread `json:"copy,omitempty"`
	By   string  `json:"by,omitempty"`
}

// cancel ends runs.
type cancel struct {
	Runs   []string `json:"runs"`
	Action string   `json:"action"`
	By     string   `json:"by,omitempty"`
}

// note says how the thread stands after its state was changed from outside.
type note struct {
	Stands string   `json:"stands"`
	Graph  string   `json:"graph,omitempty"`
	Hidden []string `json:"hidden,omitempty"`
}

// await returns when the thread has a version behind one, or after a while.
type await struct {
	Behind int64 `json:"behind"`
}

// awaitTime bounds an await: callers ask again.
const awaitTime = 20 * time.Second

func (k *keeper) checkPut(_ workflow.Context, p put) error {
	switch {
	case p.Create && k.thread.ID != "" && !k.thread.Deleted && !p.Exists:
		return refuse(errExists, "the thread exists already")
	case p.Create && !k.thread.Deleted:
		return nil
	}
	if err := k.there(); err != nil {
		return err
	}
	return checkSize(k.thread.Metadata, p.Metadata)
}

func (k *keeper) put(ctx workflow.Context, p put) (Thread, error) {
	k.updates++
	if p.Create && k.thread.ID != "" {
		return k.told(), nil
	}
	if p.Create {
		k.thread.ID = IDOf(workflow.GetInfo(ctx).WorkflowExecution.ID)
		if k.thread.Under == "" {
			k.thread.Under = k.thread.ID
		}
	}
	if c := p.Copy; p.Create && c != nil {
		k.thread.Graph, k.thread.Assistant, k.thread.Hidden = c.Graph, c.Assistant, c.Hidden
		k.thread.Origin, k.thread.Named, k.thread.Anew = c.ID, c.Names(), false
		if err := workflow.ExecuteActivity(brief(ctx), activityCopy, c.Under, k.thread.Under, p.By).Get(ctx, &k.thread.Stands); err != nil {
			k.thread.Deleted = true // nobody knows it yet
			return k.told(), err
		}
	}
	//workflowcheck:ignore A copy does not depend on the order in which the members come.
	maps.Copy(k.thread.Metadata, p.Metadata)
	k.changed(ctx)
	k.tell(ctx)
	return k.told(), nil
}

func (k *keeper) checkAdd(_ workflow.Context, r Run) error {
	if err := k.there(); err != nil {
		return err
	}
	waiting := 0
	for _, other := range k.thread.Runs {
		if other.ID == r.ID {
			return nil // the same request again
		}
		if !other.Over() {
			waiting++
		}
	}
	switch {
	case waiting > 0 && r.Strategy == Reject:
		return refuse(errBusy, "a run of the thread is under way, and multitask_strategy is reject")
	case waiting > mostPending:
		return refuse(errBusy, "%d runs of the thread wait already", waiting-1)
	}
	return nil
}

// add takes in a run, which begins when those before it have ended.
func (k *keeper) add(ctx workflow.Context, r Run) (Thread, error) {
	k.updates++
	if k.thread.Run(r.ID) != nil {
		return k.toldOf(r.ID), nil
	}
	if r.Strategy == Interrupt || r.Strategy == Rollback {
		for i := range k.thread.Runs {
			if !k.thread.Runs[i].Over() {
				k.end(ctx, k.thread.Runs[i].ID, r.Strategy, r.Start.By)
			}
		}
	}
	r.Status, r.Created, r.Updated = Pending, workflow.Now(ctx), workflow.Now(ctx)
	if r.Delay > 0 {
		r.Due = workflow.Now(ctx).Add(r.Delay)
	}
	if r.Command {
		k.thread.Commands++
		r.Ordinal = k.thread.Commands
	}
	r.Version = k.thread.Version + 1
	k.thread.Runs = append(k.thread.Runs, r)
	k.thread.Graph, k.thread.Assistant = r.Start.Graph, r.Assistant
	k.thread.Metadata["graph_id"], k.thread.Metadata["assistant_id"] = quoted(r.Start.Graph), quoted(r.Assistant)
	k.thread.trim()
	k.changed(ctx)
	k.tell(ctx)
	// Who waits here takes one of the few places that a server has for those. A run that waits its turn is waited for outside.
	if k.next(ctx).ID == r.ID {
		if _, err := workflow.AwaitWithTimeout(ctx, awaitTime, func() bool { return k.thread.at(r.ID, r.Wait) || k.moves(ctx) }); err != nil {
			return Thread{}, err
		}
	}
	return k.toldOf(r.ID), nil
}

// toldOf is the thread as it is told to who asks for a run.
func (k *keeper) toldOf(run string) Thread {
	t := k.told()
	if of := k.thread.Run(run); of != nil {
		*t.Run(run) = of.told()
	}
	return t
}

func quoted(s string) json.RawMessage {
	raw, _ := json.Marshal(s) // a string always encodes
	return raw
}

func (k *keeper) checkCancel(_ workflow.Context, c cancel) error {
	if err := k.there(); err != nil {
		return err
	}
	for _, id := range c.Runs {
		if r := k.thread.Run(id); r == nil || r.Over() {
			return refuse(errMissing, "there is no run %s under way", id)
		}
	}
	return nil
}

// cancel says which runs are to end.
func (k *keeper) cancel(ctx workflow.Context, c cancel) (Thread, error) {
	k.updates++
	for _, id := range c.Runs {
		if r := k.thread.Run(id); r != nil && !r.Over() {
			k.end(ctx, id, c.Action, c.By)
		}
	}
	k.changed(ctx)
	return k.told(), nil
}

func (k *keeper) checkRemove(_ workflow.Context, id string) error {
	if err := k.there(); err != nil {
		return err
	}
	switch r := k.thread.Run(id); {
	case r == nil:
		return refuse(errMissing, "there is no run %s", id)
	case !r.Over():
		return refuse(errBusy, "run %s is under way: cancel it first", id)
	}
	return nil
}

// remove forgets a run that has ended; its checkpoints stay.
func (k *keeper) remove(ctx workflow.Context, id string) (Thread, error) {
	k.updates++
	k.without(id)
	k.changed(ctx)
	return k.told(), nil
}

// delete ends everything. The thread is gone at once; the server deletes its runs in its own time.
func (k *keeper) delete(ctx workflow.Context) (Thread, error) {
	k.updates++
	for i := range k.thread.Runs {
		if r := &k.thread.Runs[i]; !r.Over() {
			r.Cancel, r.Version = Interrupt, k.thread.Version+1
		}
	}
	k.thread.Deleted = true
	k.changed(ctx)
	k.tell(ctx)
	return k.told(), workflow.ExecuteActivity(brief(ctx), activityErase, k.thread.Under).Get(ctx, nil)
}

func (k *keeper) note(ctx workflow.Context, n note) (Thread, error) {
	k.updates++
	k.thread.Stands, k.thread.Failure, k.thread.Anew = n.Stands, nil, false
	k.thread.Edits++
	k.thread.Hidden = append(k.thread.Hidden, n.Hidden...)
	k.changed(ctx)
	k.thread.Moved = k.thread.Updated
	k.tell(ctx)
	return k.told(), nil
}

func (k *keeper) await(ctx workflow.Context, a await) (Thread, error) {
	k.updates++
	_, err := workflow.AwaitWithTimeout(ctx, awaitTime, func() bool { // a run that ends waits for nobody
		return k.thread.Version > a.Behind || k.thread.Deleted || k.moves(ctx)
	})
	return k.thread.since(a.Behind), err
}
