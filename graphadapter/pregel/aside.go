package pregel

import (
	"bytes"
	"fmt"
	"strconv"
)

// setAside moves the long values out of the checkpoint, behind those that were moved before.
func (c *checkpointJSON) setAside(long []Held) []Held {
	for _, name := range sortedKeys(c.Values) {
		v := c.Values[name]
		if v.Len() <= maxPlain {
			continue
		}
		if c.Aside == nil {
			c.Aside = map[string]int{}
		}
		c.Aside[name] = len(long)
		long = append(long, v)
		delete(c.Values, name)
	}
	return long
}

// putBack moves the values of all checkpoints back that setAside has moved.
func putBack(checkpoints func(see func(*checkpointJSON)), long []Held) error {
	var missing []string
	checkpoints(func(c *checkpointJSON) { missing = append(missing, c.putBack(long)...) })
	if len(missing) > 0 {
		return fmt.Errorf("the values of %q are not there", missing)
	}
	return nil
}

// putBack returns the names of values that are not there.
func (c *checkpointJSON) putBack(long []Held) (missing []string) {
	for _, name := range sortedKeys(c.Aside) {
		at := c.Aside[name]
		if at < 0 || at >= len(long) {
			missing = append(missing, name)
			continue
		}
		if c.Values == nil {
			c.Values = map[string]Held{}
		}
		c.Values[name] = long[at]
	}
	return missing
}

// checkpoints calls see with each checkpoint of a suspended run, always in the same order.
func (s *suspendedJSON) checkpoints(see func(*checkpointJSON)) {
	s.records(func(r *recordJSON) { see(&r.Checkpoint) })
	s.loopJSON.works(see)
}

func (t *threadJSON) checkpoints(see func(*checkpointJSON)) {
	t.records(func(r *recordJSON) { see(&r.Checkpoint) })
}

// works calls see with each working checkpoint that is there as a whole.
func (l *loopJSON) works(see func(*checkpointJSON)) {
	if l == nil {
		return
	}
	if l.Work != nil && l.Work.Whole != nil {
		see(l.Work.Whole)
	}
	for i := range l.Runs {
		l.Runs[i].Child.works(see)
	}
}

// records calls see with each record of a suspended run, always in the same order.
func (s *suspendedJSON) records(see func(*recordJSON)) {
	if s.Thread != nil {
		s.Thread.records(see)
	}
	eachRecord(s.Remembered, see)
	s.loopJSON.records(see)
}

func (t *threadJSON) records(see func(*recordJSON)) {
	t.Head.records(see)
	eachRecord(t.Memory, see)
	eachRecord(t.Remembered, see)
}

func eachRecord(records map[string]*recordJSON, see func(*recordJSON)) {
	for _, key := range sortedKeys(records) {
		records[key].records(see)
	}
}

func (r *recordJSON) records(see func(*recordJSON)) {
	if r == nil {
		return
	}
	see(r)
	for _, path := range sortedKeys(r.Tasks) {
		if t := r.Tasks[path]; t != nil {
			t.Child.records(see)
		}
	}
}

func (l *loopJSON) records(see func(*recordJSON)) {
	if l == nil {
		return
	}
	l.Record.records(see)
	for i := range l.Runs {
		l.Runs[i].Child.records(see)
	}
}

// encodeAround writes with encode what has the checkpoints that each visits. The long values are put into the text as they are: they are
// compact JSON, which encoding/json would check and copy once more, 40 MB of it in a third of a second.
func encodeAround(each func(see func(*checkpointJSON)), encode func() ([]byte, error)) (Value, error) {
	var long []Held
	var back []func()
	each(func(c *checkpointJSON) {
		for _, name := range sortedKeys(c.Values) {
			v := c.Values[name]
			if v.Len() <= maxPlain {
				continue
			}
			c.Values[name] = Hold(standIn(len(long)))
			long = append(long, v)
			back = append(back, func() { c.Values[name] = v })
		}
	})
	text, err := encode()
	if err != nil {
		return nil, err
	}
	if whole, ok := putInto(text, long); ok {
		return whole, nil
	}
	for _, put := range back { // a short value looks like what stands for a long one
		put()
	}
	return encode()
}

// What stands for a long value in a text: the number of it in between.
const (
	standInBegins = `"@long `
	standInEnds   = `@"`
)

func standIn(n int) Value {
	return Value(standInBegins + strconv.Itoa(n) + standInEnds)
}

// putInto puts values in the place of what stands for them. It reports false when not each is stood for exactly once.
func putInto(text []byte, long []Held) (whole Value, ok bool) {
	size, missing := len(text), len(long)
	for i := range long {
		size += long[i].Len()
	}
	whole, used := make(Value, 0, size), make([]bool, len(long))
	for {
		before, behind, found := bytes.Cut(text, []byte(standInBegins))
		whole = append(whole, before...)
		if !found {
			return whole, missing == 0
		}
		number, rest, _ := bytes.Cut(behind, []byte(standInEnds))
		n, err := strconv.Atoi(string(number))
		if err != nil || n < 0 || n >= len(long) || used[n] {
			return nil, false
		}
		used[n], missing = true, missing-1
		open, last := long[n].open()
		whole, text = append(append(whole, open...), last), rest
	}
}
