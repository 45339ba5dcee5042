package workflows

import (
	"encoding/json"
	"slices"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
)

// What a node reads is part of the run's history already: its parts came in as inputs, answers and results. So a large
// value is not sent with every task that reads it: a reference is, and the worker that runs the task has the value, or
// finds it by replaying the run. History then grows with what changed.
const (
	// A value above maxInline bytes goes by reference: a reference takes about 150.
	maxInline = 4 << 10
	// The smaller values of a task's state go by one reference when together they are above maxInlineState bytes.
	maxInlineState = 8 << 10
	// maxReferred bounds what one task reads by reference: its worker holds all of it, more than once.
	maxReferred = 64 << 20
	// contextName stands for the run's context among the names of channels, which cannot have a NUL.
	contextName = "\x00context"
)

// inputs makes the references of one run. What it remembers only saves work: its references follow from the values.
type inputs struct {
	values Values // nil: nobody is told
	// known are the digests of each channel's newest value: a superstep's tasks read the same ones.
	known map[string]*known
	rest  known
}

// known is a value, or several, whose reference was made before.
type known struct {
	of     []identity
	body   pregel.Value
	digest string // "" until it is needed
}

// identity is where a value is in memory: values never change, so the same place means the same value.
type identity struct {
	name  string
	first *byte
	size  int
}

func identityOf(name string, v pregel.Value) identity {
	if len(v) == 0 {
		return identity{name: name}
	}
	return identity{name, &v[0], len(v)}
}

// shorten replaces a request's large parts by references.
func (in *inputs) shorten(ctx workflow.Context, req *graphadapter.NodeRequest) {
	in.shortenState(ctx, req)
	refer := func(part graphadapter.Part, k *known) {
		req.References = append(req.References, in.refer(ctx, part, "", k))
	}
	if len(req.Task.Arg) > maxInline {
		refer(graphadapter.PartArg, &known{body: req.Task.Arg})
		req.Task.Arg = nil
	}
	if len(req.Context) > maxInline {
		refer(graphadapter.PartContext, in.shared(contextName, req.Context))
		req.Context = nil
	}
	if req.Task.RouteOnly {
		if done, err := json.Marshal(req.Task.Done); err == nil && len(done) > maxInline {
			refer(graphadapter.PartDone, &known{body: done})
			req.Task.Done = pregel.Command{}
		}
	}
}

// shortenSegment replaces a segment's large parts by references, and always the Spec, which few workers need.
func (in *inputs) shortenSegment(ctx workflow.Context, req *segment.Request, stored *known, spec *pregel.Spec) {
	refer := func(part graphadapter.Part, k *known) {
		req.References = append(req.References, in.refer(ctx, part, "", k))
	}
	if stored.body == nil {
		body, err := json.Marshal(spec)
		if err != nil {
			panic("superstep: a spec that was compiled is always JSON: " + err.Error())
		}
		stored.body = body
	}
	refer(graphadapter.PartSpec, stored)
	if len(req.Loop) > maxInline {
		refer(graphadapter.PartLoop, &known{body: req.Loop})
		req.Loop = nil
	}
	if len(req.Context) > maxInline {
		refer(graphadapter.PartContext, in.shared(contextName, req.Context))
		req.Context = nil
	}
}

// shortenState leaves the small values of the task's state in place, if they are few.
func (in *inputs) shortenState(ctx workflow.Context, req *graphadapter.NodeRequest) {
	small, total := map[string]pregel.Held{}, 0
	var rest []identity
	for _, name := range workflow.DeterministicKeys(req.Task.State) {
		v := req.Task.State[name]
		if v.Len() > maxInline {
			req.References = append(req.References, in.refer(ctx, graphadapter.PartChannel, name, in.shared(name, v.Value())))
			continue
		}
		small[name] = v
		rest = append(rest, identityOf(name, v.Value()))
		total += len(name) + v.Len() + 4
	}
	if total > maxInlineState {
		req.References = append(req.References, in.refer(ctx, graphadapter.PartRest, "", in.bundle(rest, small)))
		small = nil
	}
	if len(req.References) > 0 {
		req.Task.State = small // a map of its own: the task's is shared
	}
}

// shared is a value that other tasks may read too.
func (in *inputs) shared(name string, v pregel.Value) *known {
	of := []identity{identityOf(name, v)}
	if in.known == nil {
		in.known = map[string]*known{}
	}
	if k := in.known[name]; k == nil || !slices.Equal(k.of, of) {
		in.known[name] = &known{of: of, body: v}
	}
	return in.known[name]
}

// bundle is one value for several small ones.
func (in *inputs) bundle(of []identity, values map[string]pregel.Held) *known {
	if !slices.Equal(in.rest.of, of) {
		body, err := json.Marshal(values)
		if err != nil {
			panic("superstep: channel values are always JSON: " + err.Error())
		}
		in.rest = known{of: of, body: body}
	}
	return &in.rest
}

// refer makes a reference, and tells of what it stands for. What a replay sends goes nowhere: digests, which would make
// replays of long runs with large values slow, are left out of it.
func (in *inputs) refer(ctx workflow.Context, part graphadapter.Part, channel string, k *known) graphadapter.Reference {
	switch {
	case !workflow.IsReplaying(ctx):
		if k.digest == "" {
			k.digest = graphadapter.DigestOf(k.body)
		}
		if in.values != nil {
			in.values.Sent(k.digest, k.body)
		}
	case in.values != nil:
		in.values.Passed(k.body)
	}
	return graphadapter.Reference{Part: part, Channel: channel, Digest: k.digest, Size: len(k.body)}
}

// referenceBytes is what a reference takes in a request, its channel's name left out.
const referenceBytes = 150

// requestSize estimates the bytes of a request's payload: its values, which alone can be large, and its references.
func requestSize(req graphadapter.NodeRequest) int {
	size := 512 + len(req.Task.Arg) + len(req.Task.Ledger) + len(req.Context)
	for _, name := range workflow.DeterministicKeys(req.Task.State) {
		size += len(name) + req.Task.State[name].Len() + 4
	}
	for _, a := range req.Task.Answers {
		size += len(a.Value) + len(a.QuestionID)
	}
	if req.Task.RouteOnly {
		if done, err := json.Marshal(req.Task.Done); err == nil {
			size += len(done)
		}
	}
	for _, ref := range req.References {
		size += referenceBytes + len(ref.Channel)
	}
	return size
}
