package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"superstep.dev/test/processes"
	"superstep.dev/test/processes/stack"
)

// build builds the programs, and says before it begins how long that may take.
func build(ctx context.Context, out *Screen, set *processes.Set, root, dir string, names []string) (stack.Programs, error) {
	out.Begin("Building %s (first time 4 to 7 min: Temporal) …", strings.Join(names, ", "))
	began := time.Now()
	stop := out.clock(began)
	programs, err := stack.Build(ctx, set, root, dir, names, nil)
	stop()
	if err != nil {
		out.Line("")
		return stack.Programs{}, err
	}
	out.Line(" done in %s", spent(time.Since(began)))
	return programs, nil
}

// spent prints how long something took that takes seconds or minutes.
func spent(d time.Duration) string {
	d = d.Round(time.Second)
	if d < time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}
