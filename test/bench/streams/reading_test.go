package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each tick counts once, of the last execution of each superstep; what comes twice, out of order, or of an execution that is void is an error.
func TestHeard(t *testing.T) {
	type step struct {
		n, since int
		fails    bool
	}
	for name, c := range map[string]struct {
		steps []step
		again int
	}{
		"two supersteps":       {[]step{{n: 0, since: 1}, {n: 1, since: 1}, {n: 2, since: 2}, {n: 3, since: 2}}, 0},
		"twice":                {[]step{{n: 0, since: 1}, {n: 0, since: 1, fails: true}}, 0},
		"a gap":                {[]step{{n: 0, since: 1}, {n: 2, since: 1, fails: true}}, 0},
		"another execution":    {[]step{{n: 0, since: 1}, {n: 0, since: 2}, {n: 1, since: 2}}, 1},
		"of the second":        {[]step{{n: 0, since: 1}, {n: 1, since: 2}, {n: 2, since: 2}, {n: 1, since: 3}, {n: 2, since: 3}}, 1},
		"in the middle":        {[]step{{n: 0, since: 1}, {n: 1, since: 1}, {n: 1, since: 2, fails: true}}, 1},
		"one that is void":     {[]step{{n: 0, since: 1}, {n: 0, since: 2}, {n: 1, since: 1, fails: true}}, 1},
		"another's with a gap": {[]step{{n: 0, since: 1}, {n: 2, since: 2, fails: true}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var h heard
			for _, s := range c.steps {
				err := h.take(tick{N: s.n, Since: int64(s.since)}, time.Now())
				require.Equal(t, s.fails, err != nil, "%v: %v", s, err)
			}
			if last := c.steps[len(c.steps)-1]; !last.fails {
				require.Equal(t, c.again, h.again)
			}
		})
	}
}
