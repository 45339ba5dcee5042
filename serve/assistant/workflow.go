package assistant

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Workflow is the type of an assistant's workflow.
const Workflow = "superstep.assistant"

// memoLine is the memo field in which an assistant's workflow has its Line.
const memoLine = "superstep.assistant"

// The updates and the query of an assistant.
const (
	updateCreate = "create"
	updateChange = "change"
	updateLatest = "latest"
	updateDelete = "delete"
	queryRecord  = "record"
)

// The types of the errors with which an assistant refuses.
const (
	errExists = "superstep.AssistantExists"
	errGone   = "superstep.AssistantGone"
	errLarge  = "superstep.AssistantTooLarge"
)

// create makes an assistant.
type create struct {
	Assistant Assistant `json:"assistant"`
	// Exists says that it may be there.
	Exists bool `json:"exists,omitempty"`
	// First is a change that follows at once: a graph's own assistant is first kept when it is changed.
	First *Change `json:"first,omitempty"`
}

// Register makes a worker keep assistants.
func Register(w worker.WorkflowRegistry) {
	w.RegisterWorkflowWithOptions(Keep, workflow.RegisterOptions{Name: Workflow})
}

// keeper is an assistant at work.
type keeper struct{ record Record }

// Keep is an assistant's workflow: it begins with nothing, or with what an earlier run of it has left.
func Keep(ctx workflow.Context, r Record) error {
	k := &keeper{r}
	if err := k.listen(ctx); err != nil {
		return err
	}
	err := workflow.Await(ctx, func() bool { return k.record.Deleted || k.full(ctx) })
	if err == nil {
		err = workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
	}
	if err == nil && !k.record.Deleted {
		return workflow.NewContinueAsNewError(ctx, Workflow, k.record)
	}
	return err
}

func (k *keeper) full(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() > 2000
}

func (k *keeper) listen(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, queryRecord, func() (Record, error) { return k.record, nil }); err != nil {
		return err
	}
	for _, u := range []struct {
		name      string
		do, check any
	}{
		{updateCreate, k.create, k.checkCreate},
		{updateChange, k.change, k.checkChange},
		{updateLatest, k.latest, k.checkLatest},
		{updateDelete, k.delete, k.there},
	} {
		if err := workflow.SetUpdateHandlerWithOptions(ctx, u.name, u.do, workflow.UpdateHandlerOptions{Validator: u.check}); err != nil {
			return err
		}
	}
	return nil
}

func refuse(kind, format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), kind, nil)
}

// there refuses what is asked of an assistant that was deleted, or never made.
func (k *keeper) there(workflow.Context) error {
	if k.record.Deleted || k.record.ID == "" {
		return refuse(errGone, "there is no such assistant")
	}
	return nil
}

// tell makes lists know of the assistant: its memo is the index.
func (k *keeper) tell(ctx workflow.Context) Record {
	if err := workflow.UpsertMemo(ctx, map[string]any{memoLine: k.record.Line()}); err != nil {
		workflow.GetLogger(ctx).Warn("the assistant's line in lists was not written", "error", err)
	}
	return k.record
}

func (k *keeper) checkCreate(_ workflow.Context, c create) error {
	switch {
	case k.record.Deleted:
		return refuse(errGone, "the assistant was deleted")
	case k.record.ID != "" && !c.Exists:
		return refuse(errExists, "the assistant exists already")
	case k.record.ID != "" && c.First != nil && tooLarge(k.record.Latest().With(*c.First)):
		return refuse(errLarge, "the assistant would have more than %d bytes", longest)
	}
	return nil
}

func (k *keeper) create(ctx workflow.Context, c create) (Record, error) {
	now := workflow.Now(ctx)
	if k.record.ID == "" {
		k.record.ID, k.record.Created, k.record.Changes = c.Assistant.ID, c.Assistant.Created, now.UnixMilli()
		k.record.add(c.Assistant, laterOf(c.Assistant.Created, now))
	}
	if c.First != nil {
		k.record.add(k.record.Latest().With(*c.First), now)
	}
	return k.tell(ctx), nil
}

// laterOf is when a version was made: now, unless that is known.
func laterOf(known, now time.Time) time.Time {
	if known.IsZero() {
		return now
	}
	return known
}

func (k *keeper) checkChange(ctx workflow.Context, c Change) error {
	if err := k.there(ctx); err != nil {
		return err
	}
	if tooLarge(k.record.Latest().With(c)) {
		return refuse(errLarge, "the assistant would have more than %d bytes", longest)
	}
	return nil
}

func (k *keeper) change(ctx workflow.Context, c Change) (Record, error) {
	k.record.add(k.record.Latest().With(c), workflow.Now(ctx))
	return k.tell(ctx), nil
}

func (k *keeper) checkLatest(ctx workflow.Context, number int) error {
	if err := k.there(ctx); err != nil {
		return err
	}
	if k.record.version(number) == nil {
		return refuse(errGone, "the assistant has no version %d", number)
	}
	return nil
}

func (k *keeper) latest(ctx workflow.Context, number int) (Record, error) {
	k.record.Current = number
	k.record.changed(workflow.Now(ctx))
	return k.tell(ctx), nil
}

func (k *keeper) delete(ctx workflow.Context) (Record, error) {
	k.record.Deleted = true
	k.record.changed(workflow.Now(ctx))
	return k.tell(ctx), nil
}
