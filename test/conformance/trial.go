package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"superstep.dev/test/conformance/trace"
)

// trial is one case, ready to be run on an engine.
type trial struct {
	source *source
	run    *run
	// deviation is what we want instead of the case's own trace, nil where we follow it.
	deviation *deviation
	// recorded is the first difference from what was recorded, once the trial was compared.
	recorded *divergence
	// broken is why the case cannot be run at all.
	broken error
}

// verdict is what became of a trial.
type verdict struct {
	// failure says on one line why the case failed, "" when it did not.
	failure string
	// deviates says that the case did as we want, which is not what LangGraph does.
	deviates bool
	// from is where it began to, when the case has no results of ours; nil otherwise. What came after was not compared.
	from *situation
	// cut says that the case shows or names checkpoints that durability exit does not keep: those were not compared.
	cut  bool
	took time.Duration
}

// newTrial builds a case's graph under that name.
func newTrial(c *source, name string) *trial {
	t := &trial{source: c, broken: c.err}
	if t.broken != nil {
		return t
	}
	all, err := deviations()
	if err != nil {
		t.broken = err
		return t
	}
	t.deviation = all[c.name()]
	if t.run, t.broken = newRun(c.doc, c.text, name); t.broken != nil {
		return t
	}
	t.run.states = func(i int) bool {
		return hasState(c.doc.Expect, i) || t.deviation != nil && hasState(t.deviation.Expect, i)
	}
	return t
}

// judge runs the trial on an engine.
func (t *trial) judge(ctx context.Context, e engine) (v verdict) {
	begun := time.Now()
	defer func() { v.took = time.Since(begun) }()
	if t.broken != nil {
		return verdict{failure: oneLine(t.broken.Error())}
	}
	if t.run.durability == modeExit && t.run.refused == nil {
		var err error
		if t.run.exit, err = newExitView(ctx, t.source, t.run.root.graph.Spec.Name); err != nil {
			return verdict{failure: oneLine(err.Error())}
		}
		v.cut = t.run.exit.cut
	}
	v.failure, v.deviates = t.compared(ctx, e)
	if v.failure != "" && t.deviation == nil && t.recorded != nil {
		v.from = t.declared(ctx)
	}
	if v.from != nil {
		v.failure, v.deviates = "", true
	}
	return v
}

// declared is the declared situation from which on the case may differ as it does, nil if there is none. The answers until
// then were as recorded.
func (t *trial) declared(ctx context.Context) *situation {
	found := situationsOf(ctx, t.source, t.run.root.graph.Spec.Name)
	var last *situation
	for i := range found {
		if found[i].action <= t.recorded.action {
			last = &found[i]
		}
	}
	return last
}

// compared runs the case and returns how it failed, or whether it did as we want instead of as recorded.
func (t *trial) compared(ctx context.Context, e engine) (wrong string, deviates bool) {
	answers, err := t.run.on(ctx, e)
	recorded, broken := t.differs(answers, t.source.doc.Expect)
	t.recorded = recorded
	switch {
	case broken != nil:
		return oneLine(broken.Error()), false
	case t.deviation == nil:
		return failure(recorded, err), false
	}
	ours, broken := t.differs(answers, t.deviation.Expect)
	switch {
	case broken != nil:
		return oneLine(broken.Error()), false
	case ours != nil || err != nil:
		return failure(ours, err), false
	case recorded == nil:
		return "it passes as LangGraph recorded it: differences/" + t.source.name() + ".json has no purpose any more", false
	}
	return "", true
}

// failure is the first difference, or what kept the case from going on until there was one.
func failure(d *divergence, err error) string {
	switch {
	case d != nil && (err == nil || !d.Missing()):
		return d.String()
	case err != nil:
		return oneLine(err.Error())
	}
	return ""
}

// divergence is the first difference of a case, and the action whose result it stands in.
type divergence struct {
	*trace.Difference
	action int
}

// differs returns the first difference of answers from expected results, nil if there is none. A state that the results
// do not show is not to be compared.
func (t *trial) differs(answers []any, expect []json.RawMessage) (*divergence, error) {
	for i := range expect {
		at := fmt.Sprintf("expect[%d]", i)
		want, err := trace.Decode(expect[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		if i >= len(answers) {
			return &divergence{&trace.Difference{Path: at, Want: want, Got: trace.Absent{}}, i}, nil
		}
		want = trace.InOrder(want)
		if t.run.exit != nil {
			want = t.run.exit.expected(i, want)
		}
		got := answers[i]
		if result, ok := got.(map[string]any); ok && !hasState(expect, i) && t.isStateBeside(i) {
			got = without(result, "state")
		}
		if d := trace.Compare(at, want, got); d != nil {
			return &divergence{d, i}, nil
		}
	}
	return nil, nil
}

// isStateBeside reports whether an action's result shows the state beside what the action itself is about.
func (t *trial) isStateBeside(i int) bool {
	actions := t.source.doc.Actions
	return i < len(actions) && actions[i].GetState == nil
}

func without(object map[string]any, key string) map[string]any {
	out := make(map[string]any, len(object))
	for k, v := range object {
		if k != key {
			out[k] = v
		}
	}
	return out
}

// hasState reports whether an expected result shows a state.
func hasState(expect []json.RawMessage, i int) bool {
	var result struct {
		State json.RawMessage `json:"state"`
	}
	return i < len(expect) && json.Unmarshal(expect[i], &result) == nil && result.State != nil
}

var lineBreaks = regexp.MustCompile(`\s*\n\s*`)

// oneLine folds the line breaks of joined errors.
func oneLine(text string) string { return lineBreaks.ReplaceAllString(strings.TrimSpace(text), "; ") }
