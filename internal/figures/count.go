package figures

import (
	"time"

	"go.temporal.io/sdk/client"
)

// Add counts n of a figure, with the values of its labels in their order. It is safe for concurrent use, as the handler is.
func Add(h client.MetricsHandler, f *Figure, graph string, n int64, values ...string) {
	tagged(h, f, graph, values).Counter(f.Name).Inc(n)
}

// Took notes one duration of a figure. It is safe for concurrent use, as the handler is.
func Took(h client.MetricsHandler, f *Figure, graph string, d time.Duration, values ...string) {
	tagged(h, f, graph, values).Timer(f.Name).Record(max(d, 0))
}

func tagged(h client.MetricsHandler, f *Figure, graph string, values []string) client.MetricsHandler {
	tags := make(map[string]string, 1+len(f.Labels))
	tags[graphLabel] = graph
	for i, name := range f.Labels {
		tags[name] = values[i]
	}
	return h.WithTags(tags)
}

// Counts counts what comes often, for one run: it makes each counter once. It is not safe for concurrent use.
type Counts struct {
	handler client.MetricsHandler
	graph   string
	made    map[made]client.MetricsCounter
}

type made struct {
	figure        *Figure
	first, second string
}

// Of returns the counts of a run of that graph.
func Of(h client.MetricsHandler, graph string) *Counts {
	return &Counts{handler: h, graph: graph, made: map[made]client.MetricsCounter{}}
}

// Add is [Add].
func (c *Counts) Add(f *Figure, n int64, values ...string) {
	key := made{figure: f}
	for i, v := range values {
		if i == 0 {
			key.first = v
		} else {
			key.second = v
		}
	}
	counter := c.made[key]
	if counter == nil {
		counter = tagged(c.handler, f, c.graph, values).Counter(f.Name)
		c.made[key] = counter
	}
	counter.Inc(n)
}

// Took is [Took].
func (c *Counts) Took(f *Figure, d time.Duration, values ...string) {
	Took(c.handler, f, c.graph, d, values...)
}
