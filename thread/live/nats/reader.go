package nats

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"superstep.dev/thread/live"
)

const (
	// idleFor is how long the server keeps the place of a reader that is gone.
	idleFor = 30 * time.Second
	// firstAgain and lastAgain bound how long a reader waits before it begins anew over the same connection: longer each time.
	firstAgain, lastAgain = 250 * time.Millisecond, 10 * time.Second
	// mostPlaces bounds the tasks of a thread of which a reader knows what came last.
	mostPlaces = 10_000
	// subscribeWithin bounds how long a reader waits for the server to be asked.
	subscribeWithin = 250 * time.Millisecond
	// pulledBytes bounds what is on its way from the server for one thread.
	pulledBytes = 4 << 20
)

// fan is a thread that is followed in this process, once for all its subscribers: what comes is kept, and handed out, by a live.Local.
type fan struct {
	thread  string
	local   live.Local
	readers int // guarded by Transport.mu
	stop    context.CancelFunc
	places  map[live.Task]live.Emission // what came last of each task, without its value
	mu      sync.Mutex
	marks   map[int64]chan struct{} // by number, those that somebody waits for; guarded by mu
}

// Subscribe implements live.Transport. It returns when the server has been asked, or after a quarter of a second: who subscribed while the
// server was away has what tasks under way have emitted once it is there.
func (t *Transport) Subscribe(ctx context.Context, thread string) (<-chan live.Emission, error) {
	t.begin()
	f, ctx := t.join(ctx, thread)
	if f == nil {
		return nil, errClosed
	}
	if !t.away.Load() {
		f.catchUp(ctx, t)
	}
	return f.local.Subscribe(ctx, thread)
}

// join makes a subscriber of those who follow a thread, nil when the transport is closed.
func (t *Transport) join(ctx context.Context, thread string) (*fan, context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		return nil, ctx
	}
	f, ok := t.fans[thread]
	if !ok {
		f = &fan{thread: thread, places: map[live.Task]live.Emission{}, marks: map[int64]chan struct{}{}, local: live.Local{Kept: keptThreadBytes}}
		followed, stop := context.WithCancel(t.ctx)
		f.stop, t.fans[thread] = stop, f
		t.ended.Go(func() { f.run(followed, t) })
	}
	ctx, cancel := context.WithCancel(ctx)
	closing := context.AfterFunc(t.ctx, cancel)
	f.readers++
	context.AfterFunc(ctx, func() {
		closing()
		cancel()
		t.leave(f)
	})
	return f, ctx
}

// leave ends a thread's following with its last subscriber.
func (t *Transport) leave(f *fan) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.readers--; f.readers > 0 {
		return
	}
	f.stop()
	if t.fans[f.thread] == f {
		delete(t.fans, f.thread)
	}
}

// run follows the thread until nobody wants it any more: from the beginning whenever there is a new connection.
func (f *fan) run(ctx context.Context, t *Transport) {
	again := firstAgain
	for ctx.Err() == nil {
		l := t.await(ctx)
		if l == nil {
			return
		}
		began := time.Now()
		err := f.follow(ctx, t, l)
		if again = min(2*again, lastAgain); errors.Is(err, errDown) || time.Since(began) > lastAgain {
			again = firstAgain
		} else if err != nil && ctx.Err() == nil && !t.unfollowed.Swap(true) {
			t.log.Warn("the live tokens of some threads cannot be followed: they come with the results of nodes", zap.Error(err))
		}
		timer := time.NewTimer(again)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// errDown says that there is no connection any more.
var errDown = errors.New("the connection was lost")

// follow reads the thread's part of the stream over one connection.
func (f *fan) follow(ctx context.Context, t *Transport, l *link) error {
	asked, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	c, err := l.stream.CreateConsumer(asked, jetstream.ConsumerConfig{FilterSubject: t.name.thread(f.thread) + ".>",
		AckPolicy: jetstream.AckNonePolicy, DeliverPolicy: jetstream.DeliverAllPolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: idleFor})
	if err != nil {
		return err
	}
	broken := make(chan error, 1)
	reads, err := c.Consume(func(m jetstream.Msg) { f.take(t, m) }, jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
		select {
		case broken <- err:
		default:
		}
	}), jetstream.PullMaxBytes(pulledBytes))
	if err != nil {
		return err
	}
	select {
	case err = <-broken:
	case <-l.down:
		err = errDown
	case <-ctx.Done():
	}
	reads.Stop()
	<-reads.Closed() // nothing is taken from now on
	select {
	case <-l.down:
	default:
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), askWithin)
		defer cancel()
		_ = l.stream.DeleteConsumer(tidy, c.CachedInfo().Name) // else it goes by itself
	}
	return err
}

// catchUp waits until all that was published before has come, for a time at most: a mark behind that goes through the stream. So
// who comes now gets nothing of tasks that have ended.
func (f *fan) catchUp(ctx context.Context, t *Transport) {
	number, there := t.marks.Add(1), make(chan struct{})
	f.mu.Lock()
	f.marks[number] = there
	f.mu.Unlock()
	t.outbox.mark(&message{subject: t.name.thread(f.thread) + "." + t.id, mark: number})
	timer := time.NewTimer(subscribeWithin)
	defer timer.Stop()
	select {
	case <-there:
	case <-timer.C:
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.marks, number)
}

// passed notes that a mark of this process has come: those before it were replaced, or came too.
func (f *fan) passed(number int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for asked, there := range f.marks {
		if asked <= number {
			close(there)
			delete(f.marks, asked)
		}
	}
}

// take takes in a message.
func (f *fan) take(t *Transport, m jetstream.Msg) {
	if mark := m.Headers().Get(markHeader); mark != "" {
		if number, err := strconv.ParseInt(mark, 10, 64); err == nil && strings.HasSuffix(m.Subject(), "."+t.id) {
			f.passed(number)
		}
		return
	}
	if len(m.Data()) == 0 {
		return // the place of a task that was forgotten
	}
	e, err := t.decode(m.Data())
	if err != nil {
		t.unreadable(err)
		return
	}
	if e.Thread != f.thread {
		return
	}
	if m.Headers().Get(endedHeader) != "" {
		delete(f.places, e.Of())
		_ = f.local.Ended(context.Background(), e.Of()) // it has no errors
		return
	}
	if f.repeated(e) {
		return
	}
	_ = f.local.Publish(context.Background(), e) // it has no errors
}

// repeated reports whether an emission, or a later one of its task, has come before.
func (f *fan) repeated(e live.Emission) bool {
	last, known := f.places[e.Of()]
	if known && (e.Scheduled.Before(last.Scheduled) || e.Scheduled.Equal(last.Scheduled) &&
		(e.Execution < last.Execution || e.Execution == last.Execution && e.Sequence <= last.Sequence)) {
		return true
	}
	if len(f.places) >= mostPlaces {
		clear(f.places) // readers know repetitions too
	}
	e.Emission.Value = nil
	f.places[e.Of()] = e
	return false
}

// unreadable says once that something cannot be read here.
func (t *Transport) unreadable(err error) {
	t.mu.Lock()
	said := t.blind
	t.blind = true
	t.mu.Unlock()
	if !said {
		t.log.Warn("live tokens cannot be read with the keys of this process: they come with the results of nodes", zap.Error(err))
	}
}
