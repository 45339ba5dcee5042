package past

import "superstep.dev/graphadapter/pregel"

// Origin is what the thread's effects tell of one of its checkpoints.
type Origin struct {
	// Run is the run that made it, "" when that is not known any more.
	Run string
	// Spec is that of the graph which goes on from it; nil when nothing was heard of the thread.
	Spec *pregel.Spec
	// Effects are those that were begun on the way to the checkpoint, and in the superstep behind it.
	Effects []EffectRecord
}

// maker is who made a checkpoint.
type maker struct {
	run  string
	spec *pregel.Spec
}

// Origin returns what is known of a checkpoint of the root graph; "" is the newest.
func (e *Effects) Origin(checkpoint string) Origin {
	newest := checkpoint == ""
	if newest && e.line.head != nil {
		checkpoint = e.line.head.Checkpoint.ID
	}
	by := e.makers[checkpoint]
	if e.line.program != nil && (newest || by.spec == nil) {
		by.spec = e.line.program.Spec // the run that goes on from it
	}
	return Origin{Run: by.run, Spec: by.spec, Effects: e.until(checkpoint)}
}

// until are the effects that were begun before or right behind a checkpoint, of its own line.
func (e *Effects) until(checkpoint string) []EffectRecord {
	on := map[string]bool{}
	for id := checkpoint; id != "" && !on[id]; id = e.line.parents[id] {
		on[id] = true
	}
	var out []EffectRecord
	for _, r := range e.rows {
		if r.before == nil || on[r.before.Checkpoint.ID] {
			out = append(out, *r)
		}
	}
	return out
}

// makes notes who has made a checkpoint of the root graph.
func (e *Effects) makes(r *pregel.Record) {
	if _, known := e.makers[r.Checkpoint.ID]; known {
		return
	}
	by := maker{run: e.run}
	if e.line.program != nil {
		by.spec = e.line.program.Spec
	}
	e.makers[r.Checkpoint.ID] = by
}
