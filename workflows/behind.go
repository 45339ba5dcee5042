package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/workflows/protocol"
)

// maxBehind is how long ago a run that ended badly is forgotten: no call to the outside takes that long to arrive.
const maxBehind = time.Hour

// behindFrom is when, at the latest, an earlier run of the thread ended badly; zero for none. It is of the server's
// clock, as is all that it is compared with.
func behindFrom(in *protocol.GraphInput, began time.Time) time.Time {
	switch {
	case in.Behind > 0:
		return began.Add(-time.Duration(in.Behind) * time.Millisecond)
	case in.Suspect:
		return began
	}
	return time.Time{}
}

// behind is how long ago that was, in milliseconds; 0 for none.
func (r *run) behind(ctx workflow.Context) int64 {
	if r.behindFrom.IsZero() {
		return 0
	}
	ago := workflow.Now(ctx).Sub(r.behindFrom)
	if ago > maxBehind {
		return 0
	}
	return max(ago.Milliseconds(), 1)
}
