package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"superstep.dev/internal/figures"
)

// What looking at the server's index may cost, however often somebody measures: after a look that took so long it rests for restAfter
// times that, and for restLeast at least.
const (
	restLeast = 10 * time.Second
	restAfter = 20
	// lookWithin bounds a look, and awaitLook for how long a measurement waits for one that is under way.
	lookWithin = time.Minute
	awaitLook  = 100 * time.Millisecond
	// freshFor is how long what was seen counts when later looks fail: then nothing is told, as nobody knows.
	freshFor = 3 * time.Minute
)

// Open are the questions of one graph, or of a job's leader, that wait for people.
type Open struct {
	Graph, About string
	Count        int64
	Oldest       time.Time // zero when nobody knows
}

// Questions has measured what look finds: the questions that wait for people. It looks only when somebody measures, and a process that
// was started anew tells the same as the one before. Where nobody measures it does nothing.
func (m *Metrics) Questions(look func(context.Context) ([]Open, error)) error {
	if m.provider == nil {
		return nil
	}
	meter := m.provider.Meter("superstep.dev")
	count, err := meter.Int64ObservableGauge(figures.QuestionsOpen.Name)
	if err != nil {
		return err
	}
	age, err := meter.Float64ObservableGauge(figures.OldestQuestion.Name, metric.WithUnit(figures.OldestQuestion.Unit))
	if err != nil {
		return err
	}
	w := &openWatch{look: look, was: map[openLabels]bool{}, now: time.Now}
	_, err = meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		open, at := w.seen(ctx)
		for _, q := range open {
			labels := metric.WithAttributes(attribute.String("graph", q.Graph), attribute.String("about", q.About))
			o.ObserveInt64(count, q.Count, labels)
			switch {
			case q.Count == 0:
				o.ObserveFloat64(age, 0, labels)
			case !q.Oldest.IsZero():
				o.ObserveFloat64(age, max(at.Sub(q.Oldest).Seconds(), 0), labels)
			}
		}
		return nil
	}, count, age)
	return err
}

type openLabels struct{ graph, about string }

// openWatch knows what waits for people, as of the last look.
type openWatch struct {
	look func(context.Context) ([]Open, error)
	now  func() time.Time

	mu      sync.Mutex
	open    []Open
	at      time.Time // of the last look that succeeded
	next    time.Time // when the next look is due
	looking chan struct{}
	was     map[openLabels]bool // what was open once is told as none, not left out
}

// seen is what waits for people now, as far as that is known, and what time it is.
func (w *openWatch) seen(ctx context.Context) ([]Open, time.Time) {
	w.mu.Lock()
	if w.looking == nil && !w.now().Before(w.next) {
		w.looking = make(chan struct{})
		go w.lookAgain(w.looking)
	}
	looking := w.looking
	w.mu.Unlock()
	if looking != nil {
		timer := time.NewTimer(awaitLook)
		defer timer.Stop()
		select {
		case <-looking:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if now.Sub(w.at) > freshFor {
		return nil, now
	}
	return w.open, now
}

func (w *openWatch) lookAgain(done chan struct{}) {
	defer close(done)
	ctx, cancel := context.WithTimeout(context.Background(), lookWithin)
	defer cancel()
	began := w.now()
	open, err := w.look(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looking = nil
	w.next = w.now().Add(max(restLeast, restAfter*w.now().Sub(began)))
	if err != nil {
		return
	}
	now := map[openLabels]bool{}
	for _, q := range open {
		now[openLabels{q.Graph, q.About}], w.was[openLabels{q.Graph, q.About}] = true, true
	}
	for labels := range w.was {
		if !now[labels] {
			open = append(open, Open{Graph: labels.graph, About: labels.about})
		}
	}
	w.open, w.at = open, w.now()
}
