package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/test/conformance/trace"
)

// hexID matches the keys by which a resume object is a map by interrupt id.
var hexID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// input is what a run action gives to the engine.
func (r *run) input(ctx context.Context, a *action) (pregel.Input, error) {
	if a.Invoke != nil {
		if string(a.Invoke) == "null" {
			return pregel.Input{}, nil
		}
		v, err := trace.Decode(a.Invoke)
		if err != nil {
			return pregel.Input{}, fmt.Errorf("invoke: %w", err)
		}
		return pregel.Input{Value: trace.Encode(v)}, nil
	}
	c := a.command()
	var in pregel.Input
	var err error
	if in.Resume, err = r.resume(ctx, a.thread(), &c); err != nil {
		return in, err
	}
	if in.Resume != nil {
		in.Resume.AskAgain = true // LangGraph runs every waiting task again, and the traces count that
	}
	in.Control, err = r.control(&c)
	return in, err
}

// resume is a command's answers, nil if it has none.
func (r *run) resume(ctx context.Context, thread string, c *commandDoc) (*pregel.Resume, error) {
	switch {
	case c.ResumeMap != nil:
		return r.resumeMap(ctx, thread, c.ResumeMap)
	case c.Resume == nil:
		return nil, nil
	}
	v, err := trace.Decode(c.Resume)
	if err != nil {
		return nil, fmt.Errorf("resume: %w", err)
	}
	if object, ok := v.(map[string]any); ok {
		byID := make(map[string]pregel.Value, len(object))
		for key, answer := range object {
			if !hexID.MatchString(key) {
				return &pregel.Resume{Scalar: trace.Encode(v)}, nil
			}
			byID[key] = trace.Encode(answer)
		}
		return &pregel.Resume{ByID: byID}, nil
	}
	return &pregel.Resume{Scalar: trace.Encode(v)}, nil
}

// resumeMap finds the questions of the thread's state by their value: a string is itself, any other value its
// canonical JSON.
func (r *run) resumeMap(ctx context.Context, thread string, answers map[string]json.RawMessage) (*pregel.Resume, error) {
	state, err := r.threads.state(ctx, place{thread: thread})
	if err != nil {
		return nil, fmt.Errorf("resume_map: reading the state: %w", err)
	}
	byID := map[string]pregel.Value{}
	for _, task := range state.Tasks {
		for _, q := range task.Questions {
			v := shown(q.Value)
			key, isText := v.(string)
			if !isText {
				key = trace.Canonical(v)
			}
			if answer, ok := answers[key]; ok {
				byID[q.ID] = answer
			}
		}
	}
	return &pregel.Resume{ByID: byID}, nil
}

// control is a command's writes and targets, nil if it has none.
func (r *run) control(c *commandDoc) (*pregel.Command, error) {
	if c.Update == nil && c.Goto == nil {
		return nil, nil
	}
	values, err := optionalObject(c.Update)
	if err != nil {
		return nil, fmt.Errorf("command: update: %w", err)
	}
	targets, err := parseTargets(c.Goto)
	if err != nil {
		return nil, fmt.Errorf("command: goto: %w", err)
	}
	f := newFrame(context.Background(), nil, nil)
	if err := f.aim(targets); err != nil {
		return nil, fmt.Errorf("command: goto: %w", err)
	}
	return &pregel.Command{Update: r.root.writes(values), Goto: f.targets}, nil
}

// optionalObject decodes an object; an absent one and null are nil.
func optionalObject(raw json.RawMessage) (map[string]any, error) {
	if raw == nil {
		return nil, nil
	}
	v, err := trace.Decode(raw)
	if err != nil || v == nil {
		return nil, err
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("want an object, got %s", trace.Brief(string(raw)))
	}
	return object, nil
}
