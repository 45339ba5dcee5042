package pregel

// setAside moves the long values out of the checkpoint, behind those that were moved before.
func (c *checkpointJSON) setAside(long []longValue) []longValue {
	for _, name := range sortedKeys(c.Values) {
		v := c.Values[name]
		if v.Len() <= maxPlain {
			continue
		}
		if c.Aside == nil {
			c.Aside = map[string]int{}
		}
		c.Aside[name] = len(long)
		long = append(long, longValue{v, c.sums[name]})
		delete(c.Values, name)
	}
	return long
}

// putBack moves the values back that setAside has moved. One that is not there is no value.
func (c *checkpointJSON) putBack(long []longValue) {
	for _, name := range sortedKeys(c.Aside) {
		at := c.Aside[name]
		if at < 0 || at >= len(long) {
			continue
		}
		if c.Values == nil {
			c.Values = map[string]Held{}
		}
		if c.sums == nil {
			c.sums = map[string]*valueDigest{}
		}
		c.Values[name], c.sums[name] = long[at].value, long[at].sum
	}
}

// checkpoints calls see with each checkpoint of a suspended run, always in the same order.
func (s *suspendedJSON) checkpoints(see func(*checkpointJSON)) {
	if s.Thread != nil {
		s.Thread.Head.checkpoints(see)
		ofRecords(s.Thread.Memory, see)
	}
	ofRecords(s.Remembered, see)
	s.loopJSON.checkpoints(see)
}

func ofRecords(records map[string]*recordJSON, see func(*checkpointJSON)) {
	for _, key := range sortedKeys(records) {
		records[key].checkpoints(see)
	}
}

func (r *recordJSON) checkpoints(see func(*checkpointJSON)) {
	if r == nil {
		return
	}
	see(&r.Checkpoint)
	for _, path := range sortedKeys(r.Tasks) {
		if t := r.Tasks[path]; t != nil {
			t.Child.checkpoints(see)
		}
	}
}

func (l *loopJSON) checkpoints(see func(*checkpointJSON)) {
	if l == nil {
		return
	}
	l.Record.checkpoints(see)
	if l.Work != nil && l.Work.Whole != nil {
		see(l.Work.Whole)
	}
	for i := range l.Runs {
		l.Runs[i].Child.checkpoints(see)
	}
}
