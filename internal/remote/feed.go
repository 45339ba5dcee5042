package remote

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/internal/history"
	"superstep.dev/internal/tape"
)

// The bounds of following runs. A server instance takes about 1,200 long polls at a time, which other calls need too.
const (
	mostTails    = 500
	pollInterval = time.Second
	// restFactor is how many times as long as the last replay took a feed rests: it takes a fifth of a core at most.
	restFactor = 4
)

// tails are the long polls that feeds of this process hold.
var tails = make(chan struct{}, mostTails)

// feeds are the runs that are followed in this process, each once for all its readers.
type feeds struct {
	mu    sync.Mutex
	byKey map[feedKey]*feed
}

// feedKey names what is followed. The graph brings the reducers, so runs read with different ones are kept apart.
type feedKey struct {
	thread, run string
	graph       *graphadapter.Graph
}

// feed is one run that is followed: what happened in it so far.
type feed struct {
	client  *Threads
	key     feedKey
	readers int // guarded by feeds.mu
	stop    context.CancelFunc

	mu   sync.Mutex
	last feedState
}

// feedState is what is known of a run.
type feedState struct {
	tape []tape.Entry
	// events counts the events that tape follows from.
	events int
	// rests says that nothing goes on in the run, closed that nothing will, err that the run can be followed no further.
	rests, closed bool
	// next is the run that a closed one was continued as, "" when it was not.
	next    string
	err     error
	changed chan struct{} // closed when there is a later state
}

// join begins to follow a run, or joins those who do. leave must be called once.
func (fs *feeds) join(c *Threads, key feedKey) (f *feed, leave func()) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f, ok := fs.byKey[key]
	if !ok || f.now().err != nil { // who comes after a failure begins anew
		ctx, cancel := context.WithCancel(context.Background())
		f = &feed{client: c, key: key, stop: cancel, last: feedState{changed: make(chan struct{})}}
		if fs.byKey == nil {
			fs.byKey = map[feedKey]*feed{}
		}
		fs.byKey[key] = f
		go f.run(ctx)
	}
	f.readers++
	return f, func() { fs.leave(f) }
}

func (fs *feeds) leave(f *feed) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f.readers--; f.readers > 0 {
		return
	}
	f.stop()
	if fs.byKey[f.key] == f {
		delete(fs.byKey, f.key)
	}
}

func (f *feed) now() feedState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

func (f *feed) put(s feedState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.changed = make(chan struct{})
	close(f.last.changed)
	f.last = s
}

// run follows the run until it has ended or nobody reads any more.
func (f *feed) run(ctx context.Context) {
	events := f.client.tail.Events(f.key.thread, f.key.run)
	state, durable := feedState{}, 0
	var last replayed
	for !state.closed && state.err == nil {
		var took time.Duration
		if state.err = f.news(ctx, events, last); state.err == nil && history.Durable(events.All) > durable {
			durable = history.Durable(events.All)
			last, took, state.err = f.replay(events, last.ahead)
		}
		state.tape = last.whole()
		state.events = len(events.All)
		state.rests = last.stands && durable == len(events.All)
		state.closed = state.err == nil && events.Closed()
		if state.closed {
			state.next = events.All[len(events.All)-1].GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		}
		f.put(state)
		if !rest(ctx, restFactor*took) {
			return
		}
	}
}

// news waits for events that are not here yet. Meanwhile it tells what a segment under way has stored.
func (f *feed) news(ctx context.Context, events *history.Events, last replayed) error {
	come := make(chan error, 1)
	go func() { come <- f.more(ctx, events) }()
	var looks <-chan time.Time
	if last.ahead != nil {
		ticker := time.NewTicker(lookInterval)
		defer ticker.Stop()
		looks = ticker.C
	}
	for {
		select {
		case err := <-come:
			return err
		case <-looks:
			if f.look(ctx, last.ahead) {
				f.put(feedState{tape: last.whole(), events: f.now().events})
			}
		}
	}
}

// rest waits; it reports false when ctx ended first.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// more waits for events that are not here yet. A long history comes in pages: all of it is fetched before any is read.
func (f *feed) more(ctx context.Context, events *history.Events) error {
	select {
	case tails <- struct{}{}:
		defer func() { <-tails }()
	default:
		if err := f.poll(ctx, events); err != nil {
			return err
		}
	}
	if err := events.More(ctx); err != nil {
		return err
	}
	length, err := f.client.historyLength(ctx, f.key.thread, f.key.run)
	for err == nil && int64(events.Seen()) < length {
		err = events.More(ctx)
	}
	return err
}

// poll waits for news without keeping the server waiting.
func (f *feed) poll(ctx context.Context, events *history.Events) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		length, err := f.client.historyLength(ctx, f.key.thread, f.key.run)
		if err != nil || length > int64(len(events.All)) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// lookInterval is how often a feed asks what a segment under way has stored.
const lookInterval = 500 * time.Millisecond

// ahead reads what a segment under way has stored with its heartbeats: what the run's history will tell when the segment
// has ended.
type ahead struct {
	activityID string
	loop       *pregel.Loop // nil when what is stored is none of this loop's
	ready      []*pregel.Task
	deliveries int // made so far
	tape       []tape.Entry
}

// handed is a run as it was handed to a segment.
type handed struct {
	activityID string
	program    *pregel.Program
	suspended  pregel.Value
}

// ahead returns the reader of the segment, nil when events say that it has ended, or when this process cannot read it.
func (h *handed) ahead(events []*historypb.HistoryEvent) *ahead {
	if h == nil || !underWay(events, h.activityID) {
		return nil
	}
	a := &ahead{activityID: h.activityID}
	loop, err := h.program.Restore(h.suspended, func(e pregel.Event) {
		a.tape = append(a.tape, tape.Entry{Ahead: true, Event: e})
	})
	if err != nil {
		return nil
	}
	a.loop, a.ready = loop, loop.Ready()
	return a
}

// underWay reports whether an activity was scheduled and has not ended.
func underWay(events []*historypb.HistoryEvent, activityID string) bool {
	scheduled := slices.IndexFunc(events, func(e *historypb.HistoryEvent) bool {
		return e.GetActivityTaskScheduledEventAttributes().GetActivityId() == activityID
	})
	return scheduled >= 0 && !slices.ContainsFunc(events[scheduled:], func(e *historypb.HistoryEvent) bool {
		return endOf(e) == events[scheduled].GetEventId()
	})
}

// endOf is the event that scheduled the activity whose end an event is; 0 for other events.
func endOf(e *historypb.HistoryEvent) int64 {
	return cmp.Or(
		e.GetActivityTaskCompletedEventAttributes().GetScheduledEventId(),
		e.GetActivityTaskFailedEventAttributes().GetScheduledEventId(),
		e.GetActivityTaskTimedOutEventAttributes().GetScheduledEventId(),
		e.GetActivityTaskCanceledEventAttributes().GetScheduledEventId(),
	)
}

// Read takes in a record; it reports whether there was news. One that cannot be read tells nothing.
func (a *ahead) Read(details *commonpb.Payloads, c converter.DataConverter) bool {
	var progress graphadapter.Progress
	var record []byte
	if a.loop == nil || len(details.GetPayloads()) == 0 || c.FromPayloads(details, &progress, &record) != nil {
		return false
	}
	all, err := segment.DecodeRecord(record)
	if err != nil || len(all) <= a.deliveries {
		return false
	}
	had := len(a.tape)
	if a.ready, err = segment.Redeliver(a.loop, a.ready, all[a.deliveries:], nil); err != nil {
		a.tape, a.loop = a.tape[:had], nil // this process's reducers are others: the history tells, later
		return false
	}
	a.deliveries = len(all)
	return true
}

// look asks the server what the segment has stored; it reports whether there was news.
func (f *feed) look(ctx context.Context, a *ahead) bool {
	described, err := f.client.temporal.DescribeWorkflowExecution(ctx, f.key.thread, f.key.run)
	if err != nil {
		return false
	}
	at := slices.IndexFunc(described.GetPendingActivities(), func(p *workflowpb.PendingActivityInfo) bool {
		return p.GetActivityId() == a.activityID
	})
	return at >= 0 && a.Read(described.GetPendingActivities()[at].GetHeartbeatDetails(), f.client.tail.Converter)
}
