package workflows

import (
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/figures"
	"superstep.dev/workflows/protocol"
)

// counted counts what a run does, for the metrics of the worker that decides. Temporal's handler counts nothing while the run
// is replayed; a workflow task that has to be repeated counts again what it decides. No decision follows from anything here.
type counted struct {
	*figures.Counts
	traced *traced
	// asked are the questions that this run has seen asked and not answered.
	asked map[string]askedQuestion
	// events and bytes are the history's as they were counted last, step the superstep.
	events, bytes, step int
	known               bool            // step is
	enters              int             // 1 behind an input
	near                map[string]bool // limits that the run came near to
}

type askedQuestion struct {
	at    time.Time
	about string
}

// counts returns the counts of a run. A graph that this worker does not have is none that a label names.
func (g *Graphs) counts(ctx workflow.Context, graph string) *counted {
	if g.byName[graph] == nil {
		graph = ""
	}
	return &counted{Counts: figures.Of(workflow.GetMetricsHandler(ctx), graph), asked: map[string]askedQuestion{}, near: map[string]bool{}}
}

// happened counts an event of the engine.
func (c *counted) happened(ctx workflow.Context, e pregel.Event) {
	switch {
	case e.Kind == pregel.EventTaskEnd:
		c.Add(figures.Tasks, 1, activityNode(e.Task), outcomeOf(e))
	case e.Kind == pregel.EventUpdate && e.Cached:
		c.Add(figures.Tasks, 1, activityNode(e.Task), "cached")
	case e.Kind == pregel.EventCheckpoint && e.Namespace == "":
		c.checkpoint(ctx, e.Checkpoint.Checkpoint)
	}
	for _, q := range e.Questions {
		if q.Event == "" {
			c.ask(workflow.Now(ctx), q.ID, aboutOf(q))
		}
	}
}

func outcomeOf(e pregel.Event) string {
	switch {
	case e.Error != nil:
		return "failed"
	case len(e.Questions) > 0:
		return "asked"
	}
	return "done"
}

// checkpoint counts the superstep that made it, and those of a segment that were passed over before it. The first behind an input
// runs the hidden entry alone, and is none that anybody has written.
func (c *counted) checkpoint(ctx workflow.Context, made *pregel.Checkpoint) {
	switch made.Source {
	case pregel.SourceInput:
		c.enters = 1
	case pregel.SourceLoop:
		since := 1
		if c.known && made.Step > c.step {
			since = made.Step - c.step
		}
		if since -= c.enters; since > 0 {
			c.Add(figures.Supersteps, int64(since))
		}
		c.enters = 0
	}
	c.step, c.known = made.Step, true
	c.grown(ctx)
}

// passedOver counts the outcomes of a segment that are not delivered one by one. Of which nodes they are is not read.
func (c *counted) passedOver(outcomes int) { c.Add(figures.Tasks, int64(outcomes), "*", "done") }

// nearLimit is from which part of a limit on a run is near to it.
const nearLimit = 0.8

// grown counts by how much the history has grown, and how near to its bounds it is.
func (c *counted) grown(ctx workflow.Context) {
	info := workflow.GetInfo(ctx)
	events, bytes := info.GetCurrentHistoryLength(), info.GetCurrentHistorySize()
	if events > c.events {
		c.Add(figures.HistoryEvents, int64(events-c.events))
		c.Add(figures.HistoryBytes, int64(max(bytes-c.bytes, 0)))
		c.events, c.bytes = events, bytes
	}
	c.nearTo("history_events", events, MaxEvents)
	c.nearTo("history_bytes", bytes, graphadapter.HistoryRoom)
}

func (c *counted) nearTo(limit string, is, most int) {
	if float64(is) >= nearLimit*float64(most) && !c.near[limit] {
		c.near[limit] = true
		c.Add(figures.LimitsNear, 1, limit)
	}
}

func (c *counted) ask(at time.Time, question, about string) {
	if _, known := c.asked[question]; question == "" || known {
		return
	}
	c.asked[question] = askedQuestion{at, about}
	c.Add(figures.QuestionsAsked, 1, about)
}

// answered counts how old a question became. One that an earlier run asked has an age that this one does not know.
func (c *counted) answered(at time.Time, question string) {
	if q, known := c.asked[question]; known {
		delete(c.asked, question)
		c.Took(figures.QuestionAge, at.Sub(q.at), q.about)
	}
}

// noted counts an entry of the audit: there each is once, however often an activity told of it.
func (c *counted) noted(e approval.Entry) {
	switch e.Kind {
	case approval.KindAnswered, approval.KindExpired, approval.KindWithdrawn, approval.KindRuled:
		c.answered(e.At, e.Question)
	}
	switch e.Kind {
	case approval.KindAnswered:
		if e.Verdict != "" {
			c.Add(figures.Approvals, 1, string(e.Verdict))
		}
	case approval.KindExpired, approval.KindWithdrawn:
		c.Add(figures.Approvals, 1, string(e.Kind))
	case approval.KindReconciled:
		c.Add(figures.EffectsReconciled, 1, e.Effect, reconciledBy(e))
	case approval.KindUnclear:
		c.Add(figures.EffectsUnknown, 1, e.Effect)
		c.ask(e.At, e.Question, "doubt")
	case approval.KindUndone:
		c.Add(figures.EffectsCompensated, 1, e.Effect)
	case approval.KindRuled:
		c.Add(figures.Takeovers, 1, map[bool]string{true: "effect", false: "worker"}[e.Effect != ""])
	case approval.KindRetried:
		c.Add(figures.Takeovers, 1, "retry")
	}
}

// reconciledBy is how it was found out what became of a write; see life.Trail.
func reconciledBy(e approval.Entry) string {
	switch {
	case strings.HasPrefix(e.Reason, "lookup"):
		return "looked_up"
	case strings.HasPrefix(e.Reason, life.RepeatedCall):
		return "repeated"
	}
	return "ruled"
}

// ended counts how a run ended that has returned that error.
func (c *counted) ended(ctx workflow.Context, err error) {
	c.grown(ctx)
	switch {
	case err == nil:
		c.Add(figures.RunsEnded, 1, protocol.StatusFinished)
	case workflow.IsContinueAsNewError(err):
		c.Add(figures.RunsContinued, 1)
	case temporal.IsCanceledError(err):
		c.Add(figures.RunsEnded, 1, protocol.StatusCancelled)
	default:
		c.Add(figures.RunsEnded, 1, protocol.StatusFailed)
	}
}
