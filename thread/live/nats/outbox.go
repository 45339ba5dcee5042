package nats

import (
	"cmp"
	"container/list"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"superstep.dev/thread/live"
)

// The bounds of what a process keeps of its own tasks under way.
const (
	keptBytes       = 64 << 20
	keptThreadBytes = 16 << 20
	// keptFor is how long a task may be silent.
	keptFor = streamAge
	// keptFrame is what a message takes beside its data.
	keptFrame = 256
	// mostQueued and mostQueuedBytes bound what waits for the server's socket.
	mostQueued      = 20_000
	mostQueuedBytes = 8 << 20
	// batchBytes is how much is taken from there at a time.
	batchBytes = 1 << 20
)

// message is one on its way to the server.
type message struct {
	number  int64 // among the emissions of the process
	subject string
	data    []byte
	ended   bool
	// replaces says that it replaces what the stream has of its subject.
	replaces bool
	// mark is the number of a reader's mark, 0 for none.
	mark int64
}

func (m *message) size() int { return keptFrame + len(m.subject) + len(m.data) }

func (m *message) forServer() *nats.Msg {
	out := nats.NewMsg(m.subject)
	out.Data = m.data
	if m.ended {
		out.Header.Set(endedHeader, "1")
	}
	if m.mark > 0 {
		out.Header.Set(markHeader, strconv.FormatInt(m.mark, 10))
	}
	if m.replaces || m.mark > 0 {
		out.Header.Set(rollupHeader, "sub")
		out.Header.Set(ttlHeader, markLife)
	}
	return out
}

// emission reports whether it is one: all others are of use whatever the server has.
func (m *message) emission() bool { return !m.ended && m.mark == 0 }

// outbox keeps what the process's tasks under way have emitted, and hands it to the server: from the beginning whenever there is
// a new connection, and then as it comes. The zero value is ready.
type outbox struct {
	mu     sync.Mutex
	kept   map[live.Task]*list.Element // of silent
	silent list.List                   // of *underWay, the one that has been silent for longest first
	thread map[string]int              // bytes kept of each
	bytes  int
	number int64

	again  []*message // what was kept at the beginning of a connection, and goes first
	queue  []*message
	queued int // bytes
	// follows says that the server has what is kept, up to the queue; else it gets all of it first.
	follows bool
	idle    bool          // nothing is in the sender's hands
	news    chan struct{} // has an element while there may be something to send
}

// underWay is a task that has not ended.
type underWay struct {
	task     live.Task
	messages []*message
	bytes    int
	last     time.Time
	gone     bool // its beginning was forgotten: the rest is of use only to those who follow
}

// publish keeps an emission, and queues it.
func (o *outbox) publish(e live.Emission, subject string, data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.number++
	m := &message{number: o.number, subject: subject, data: data}
	u := o.of(e)
	if !u.gone {
		u.messages = append(u.messages, m)
		o.grow(u, m.size())
	}
	for o.thread[e.Thread] > keptThreadBytes {
		o.shed(e.Thread)
	}
	for o.bytes > keptBytes {
		o.shed("")
	}
	if o.follows {
		o.add(m)
	}
}

// of is the task of an emission, from now on the one that was silent for the shortest time; o.mu is held.
func (o *outbox) of(e live.Emission) *underWay {
	at, ok := o.kept[e.Of()]
	if !ok {
		if o.kept == nil {
			o.kept, o.thread = map[live.Task]*list.Element{}, map[string]int{}
		}
		at = o.silent.PushBack(&underWay{task: e.Of(), gone: e.Sequence > 0})
		o.kept[e.Of()] = at
		o.grow(at.Value.(*underWay), keptFrame)
	}
	o.silent.MoveToBack(at)
	u := at.Value.(*underWay)
	u.last, u.gone = time.Now(), u.gone && e.Sequence > 0
	return u
}

func (o *outbox) grow(u *underWay, size int) {
	u.bytes += size
	o.bytes += size
	if o.thread[u.task.Thread] += size; o.thread[u.task.Thread] == 0 {
		delete(o.thread, u.task.Thread)
	}
}

// shed forgets the task of a thread, or of any, that has been silent for longest, here and in the stream; o.mu is held.
func (o *outbox) shed(thread string) {
	for at := o.silent.Front(); at != nil; at = at.Next() {
		u := at.Value.(*underWay)
		if thread != "" && u.task.Thread != thread {
			continue
		}
		if o.forget(u.task); len(u.messages) > 0 && o.follows {
			// Without data nobody takes it for the task's end: those who follow get what comes.
			o.add(&message{subject: u.messages[0].subject, ended: true, replaces: true})
		}
		return
	}
}

func (o *outbox) forget(task live.Task) {
	at, ok := o.kept[task]
	if !ok {
		return
	}
	u := at.Value.(*underWay)
	o.grow(u, -u.bytes)
	o.silent.Remove(at)
	delete(o.kept, task)
}

// end forgets a task, and has the stream forget it.
func (o *outbox) end(task live.Task, subject string, data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forget(task)
	o.add(&message{subject: subject, data: data, ended: true})
	time.AfterFunc(lingers, func() { o.mark(&message{subject: subject, data: data, ended: true, replaces: true}) })
}

// mark queues what is no emission.
func (o *outbox) mark(m *message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(m)
}

// add queues a message; o.mu is held. A queue that grows too long is given up for what is kept.
func (o *outbox) add(m *message) {
	o.queue = append(o.queue, m)
	o.queued += m.size()
	if len(o.queue) > mostQueued || o.queued > mostQueuedBytes {
		o.follows = false
		o.marksAlone()
	}
	o.tell()
}

// marksAlone leaves the newest marks in the queue; o.mu is held.
func (o *outbox) marksAlone() {
	o.queue = slices.DeleteFunc(o.queue, func(m *message) bool { return m.emission() })
	o.queue = slices.Clone(o.queue[max(0, len(o.queue)-mostQueued/2):])
	o.queued = 0
	for _, m := range o.queue {
		o.queued += m.size()
	}
}

// tell wakes the sender; o.mu is held.
func (o *outbox) tell() {
	if o.news == nil {
		o.news = make(chan struct{}, 1)
	}
	select {
	case o.news <- struct{}{}:
	default:
	}
}

// take takes messages from the queue; a sender that has nothing of what is kept gets that first.
func (o *outbox) take() (all []*message, news <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.news == nil {
		o.news = make(chan struct{}, 1)
	}
	if !o.follows {
		o.follows = true
		o.expire()
		o.marksAlone()
		o.again = nil
		for _, at := range o.kept {
			o.again = append(o.again, at.Value.(*underWay).messages...)
		}
		slices.SortFunc(o.again, func(a, b *message) int { return cmp.Compare(a.number, b.number) })
	}
	if all, o.again = batch(o.again); len(all) == 0 {
		all, o.queue = batch(o.queue)
		for _, m := range all {
			o.queued -= m.size()
		}
	}
	o.idle = len(all) == 0
	return all, o.news
}

// batch takes the first messages out of a list.
func batch(from []*message) (taken, rest []*message) {
	n, size := 0, 0
	for n < len(from) && size < batchBytes {
		size += from[n].size()
		n++
	}
	taken = slices.Clone(from[:n])
	clear(from[:n])
	return taken, from[n:]
}

// expire forgets tasks that have been silent for too long, as those are that went on elsewhere; o.mu is held.
func (o *outbox) expire() {
	for at := o.silent.Front(); at != nil && time.Since(at.Value.(*underWay).last) > keptFor; at = o.silent.Front() {
		o.forget(at.Value.(*underWay).task)
	}
}

// interrupted says that the server may have nothing of what is kept.
func (o *outbox) interrupted() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.follows = false
	o.marksAlone()
}

// run sends until the transport is closed.
func (o *outbox) run(t *Transport) {
	for {
		l := t.await(t.ctx)
		if l == nil {
			return
		}
		o.send(t, l)
		o.interrupted()
	}
}

// send sends over one connection, until it is lost.
func (o *outbox) send(t *Transport, l *link) {
	for {
		all, news := o.take()
		for _, m := range all {
			// One that is too large for this server comes with the result.
			if err := l.conn.PublishMsg(m.forServer()); err != nil && !errors.Is(err, nats.ErrMaxPayload) {
				select {
				case <-l.down: // it is about to show
				case <-t.ctx.Done():
				}
				return
			}
		}
		if len(all) > 0 {
			continue
		}
		select {
		case <-news:
		case <-l.down:
			return
		case <-t.ctx.Done():
			_ = l.conn.FlushTimeout(lastWords) // what is on its way
			return
		}
	}
}

// drain waits until a server that is there has all of the queue, for a time at most.
func (o *outbox) drain(most time.Duration) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(most); time.Now().Before(until); <-tick.C {
		o.mu.Lock()
		done := !o.follows || len(o.queue) == 0 && len(o.again) == 0 && o.idle
		o.mu.Unlock()
		if done {
			return
		}
	}
}
