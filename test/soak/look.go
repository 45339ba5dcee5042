package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"superstep.dev/thread"

	"superstep.dev"
)

// look holds the thread against what was promised.
func (l *life) look(ctx context.Context, c *superstep.Client, temporal client.Client) (err error) {
	view, err := c.Show(ctx, l.thread)
	if err != nil {
		return err
	}
	if view.Status != thread.StatusFinished {
		l.breaks("the thread is %s: %s", view.Status, view.Error)
		return nil
	}
	state, err := c.State(ctx, thread.StateRequest{Thread: l.thread})
	if err != nil {
		return err
	}
	if at := string(state.Values["at"]); at != fmt.Sprint(l.supersteps) {
		l.breaks("it ended at superstep %s", at)
	}
	var answers []string
	if err := json.Unmarshal(state.Values["answers"], &answers); err != nil {
		return err
	}
	l.judge(answers)
	if l.continues, err = continues(ctx, temporal, l.thread); err != nil {
		return err
	}
	began := time.Now()
	err = errors.Join(l.history(ctx, c), l.stream(ctx, c))
	l.reading = time.Since(began)
	return err
}

// judge takes in the answers that the thread has. All those of whom a person was told that it counts must be there.
func (l *life) judge(answers []string) {
	l.answers = len(answers)
	if asked := len(l.people.asked); l.answers != l.questions || asked != l.questions {
		l.breaks("it asked %d questions and has %d answers", asked, l.answers)
	}
	has, every := map[string]bool{}, l.supersteps/l.questions
	for i, a := range answers {
		var n int
		var by string
		if _, err := fmt.Sscanf(a, "%d by %s", &n, &by); err != nil || n != (i+1)*every {
			l.breaks("answer %d is %q", i+1, a)
		}
		has[a] = true
	}
	for question, a := range l.people.taken {
		if !has[a] {
			l.breaks("%q, which was taken as the answer to %s, does not count", a, question)
		}
	}
	for _, question := range l.people.twice {
		l.breaks("two answers were taken to %s", question)
	}
}

// history looks for each checkpoint once: of the input, of the state before the first superstep's end, and of each.
func (l *life) history(ctx context.Context, c *superstep.Client) error {
	all, err := c.History(ctx, thread.HistoryRequest{Thread: l.thread})
	if err != nil {
		return fmt.Errorf("read the history: %w", err)
	}
	seen := map[string]bool{}
	for i, one := range all {
		if seen[one.Checkpoint] {
			l.breaks("checkpoint %s comes twice", one.Checkpoint)
		}
		seen[one.Checkpoint] = true
		if want := l.supersteps - i; one.Step != want {
			l.breaks("the history has superstep %d in the place of %d", one.Step, want)
			return nil
		}
	}
	if len(all) != l.supersteps+2 {
		l.breaks("the history has %d checkpoints for %d supersteps", len(all), l.supersteps)
	}
	return nil
}

// stream looks for each superstep's update once, in order.
func (l *life) stream(ctx context.Context, c *superstep.Client) error {
	next := 1
	for part, err := range c.Stream(ctx, thread.StreamRequest{Thread: l.thread, Modes: []thread.StreamMode{thread.StreamUpdates}}) {
		if err != nil {
			return fmt.Errorf("read the stream: %w", err)
		}
		var update map[string]struct{ At int }
		if json.Unmarshal(part.Data, &update) != nil || update[stepNode].At == 0 {
			continue // a question
		}
		if at := update[stepNode].At; at != next {
			l.breaks("the stream has superstep %d in the place of %d", at, next)
			return nil
		}
		next++
	}
	if next != l.supersteps+1 {
		l.breaks("the stream ends behind superstep %d", next-1)
	}
	return nil
}

// continues counts how often a thread was continued as a new run.
func continues(ctx context.Context, temporal client.Client, thread string) (n int, err error) {
	described, err := temporal.DescribeWorkflowExecution(ctx, thread, "")
	if err != nil {
		return 0, err
	}
	for id := described.GetWorkflowExecutionInfo().GetFirstRunId(); ; n++ {
		event, err := temporal.GetWorkflowHistory(ctx, thread, id, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT).Next()
		if err != nil {
			return n, err
		}
		if id = event.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId(); id == "" {
			return n, nil
		}
	}
}

func (l *life) breaks(format string, args ...any) {
	l.broken = append(l.broken, fmt.Sprintf(format, args...))
}

func (l *life) print(out io.Writer) {
	p := &l.people
	for _, row := range []struct {
		name  string
		value any
	}{
		{"supersteps", l.supersteps},
		{"continued as a new run", l.continues},
		{"workers killed", l.kills},
		{"  at a continue-as-new", l.atOne},
		{"questions", l.questions},
		{"answers sent", p.sent},
		{"  applied", l.answers},
		{"  refused, answered before", p.refused},
		{"  taken before, same id", p.repeated},
		{"  without a reply", p.unheard},
		{"elapsed", l.took.Round(time.Second)},
		{"supersteps/s", fmt.Sprintf("%.1f", float64(l.supersteps)/l.took.Seconds())},
		{"history and stream read in", l.reading.Round(time.Millisecond)},
	} {
		fmt.Fprintf(out, "%-28s %12v\n", row.name, row.value)
	}
	for _, what := range l.broken {
		fmt.Fprintln(out, "    broken:", what)
	}
}
