package pregel

// Frozen is a run as it stood, in memory: [Frozen.Restore] goes on from there in the same process as [Program.Restore] does from what
// [Loop.Suspend] wrote, and nothing is written or read. The loop that it was taken of may go on.
type Frozen struct {
	of   *suspendedJSON
	size int
}

// Freeze returns the run and its thread as they are now. It must be the root's, and quiet: anything else is an error, as with
// [Loop.Suspend].
func (l *Loop) Freeze() (Frozen, error) {
	of, err := suspend(l)
	if err != nil {
		return Frozen{}, err
	}
	f := Frozen{of: of, size: l.thread.filled}
	of.checkpoints(func(c *checkpointJSON) {
		//workflowcheck:ignore A sum has no order.
		for _, v := range c.Values {
			f.size += v.Len()
		}
		for i := range c.Sends {
			f.size += len(c.Sends[i].Arg)
		}
	})
	of.records(func(r *recordJSON) {
		//workflowcheck:ignore A sum has no order.
		for _, t := range r.Tasks {
			f.size += t.size()
		}
	})
	return f, nil
}

// Restore is [Program.Restore] of the run, and so is the error. It may be called more than once, each time for a loop of its own.
func (f Frozen) Restore(p *Program, observe Observer) (*Loop, error) {
	return restored(p, f.of, observe)
}

// Size is how many bytes its values have, and what its tasks came to: about as many as it would have as text.
func (f Frozen) Size() int { return f.size }
