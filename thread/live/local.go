package live

import (
	"cmp"
	"container/list"
	"context"
	"slices"
	"sync"

	"superstep.dev/graphadapter"
)

// The bounds of a [Local].
const (
	// liveBacklog and liveBacklogBytes bound what one subscriber may be behind.
	LiveBacklog      = 10_000
	LiveBacklogBytes = 16 << 20
	// liveKeptBytes bounds what is kept of all tasks under way together, unless Local.Kept says otherwise.
	liveKeptBytes = 64 << 20
	// liveFrame is what an emission takes beside its value.
	liveFrame = 256
)

// LiveSize is what an emission takes in memory, in bytes, beside the channels that carry it.
func LiveSize(e Emission) int { return liveFrame + len(e.Emission.Value) }

// Local is a [Transport] within one process: for workers and readers that live together, and for tests. The
// zero value is ready.
//
// It keeps 64 MiB, or Kept, of what tasks under way have emitted; above that it forgets the task that has been silent for longest. A
// reader that is more than 10,000 emissions or 16 MiB behind misses some. What is missed comes with the result.
type Local struct {
	// Kept bounds what is kept of the tasks under way, in bytes; 0 is 64 MiB. It may not change.
	Kept        int
	mu          sync.Mutex
	subscribers map[string]map[*localSubscriber]bool // by thread
	kept        map[Task]*list.Element               // of silent
	threads     map[string]map[Task]*localTask
	silent      list.List // of *localTask, the one that has been silent for longest first
	bytes       int
	published   int64
}

// localTask is a task under way.
type localTask struct {
	task    Task
	emitted []localEmission
	bytes   int
	// gone says that its beginning was forgotten: the rest is of no use to who comes later.
	gone bool
}

// localEmission is an emission and its number among all of them.
type localEmission struct {
	number int64
	Emission
}

// Publish implements [Transport].
func (t *Local) Publish(_ context.Context, e Emission) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.published++
	t.keep(e)
	for s := range t.subscribers[e.Thread] {
		s.add(e)
	}
	return nil
}

// keep keeps an emission for those who come later; t.mu is held.
func (t *Local) keep(e Emission) {
	at, ok := t.kept[e.Of()]
	if !ok {
		under := &localTask{task: e.Of(), gone: e.Sequence > 0}
		at = t.silent.PushBack(under)
		if t.kept == nil {
			t.kept, t.threads = map[Task]*list.Element{}, map[string]map[Task]*localTask{}
		}
		if t.threads[e.Thread] == nil {
			t.threads[e.Thread] = map[Task]*localTask{}
		}
		t.kept[e.Of()], t.threads[e.Thread][e.Of()] = at, under
		t.bytes += liveFrame
	}
	t.silent.MoveToBack(at)
	under := at.Value.(*localTask)
	if under.gone = under.gone && e.Sequence > 0; !under.gone {
		under.emitted = append(under.emitted, localEmission{t.published, e})
		under.bytes += LiveSize(e)
		t.bytes += LiveSize(e)
	}
	for t.bytes > cmp.Or(t.Kept, liveKeptBytes) {
		t.forget(t.silent.Front().Value.(*localTask).task)
	}
}

// forget forgets a task; t.mu is held.
func (t *Local) forget(task Task) {
	at, ok := t.kept[task]
	if !ok {
		return
	}
	t.bytes -= liveFrame + at.Value.(*localTask).bytes
	t.silent.Remove(at)
	delete(t.kept, task)
	if delete(t.threads[task.Thread], task); len(t.threads[task.Thread]) == 0 {
		delete(t.threads, task.Thread)
	}
}

// Ended implements [Transport].
func (t *Local) Ended(_ context.Context, task Task) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(task)
	return nil
}

// Subscribe implements [Transport].
func (t *Local) Subscribe(ctx context.Context, thread string) (<-chan Emission, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &localSubscriber{news: make(chan struct{}, 1)}
	for _, e := range t.underWay(thread) {
		s.add(e.Emission)
	}
	if t.subscribers == nil {
		t.subscribers = map[string]map[*localSubscriber]bool{}
	}
	if t.subscribers[thread] == nil {
		t.subscribers[thread] = map[*localSubscriber]bool{}
	}
	t.subscribers[thread][s] = true
	out := make(chan Emission)
	go func() {
		defer close(out)
		defer t.leave(thread, s)
		s.hand(ctx, out)
	}()
	return out, nil
}

// underWay is what a thread's tasks have emitted, in the order in which it was published; t.mu is held.
func (t *Local) underWay(thread string) []localEmission {
	var all []localEmission
	for _, under := range t.threads[thread] {
		all = append(all, under.emitted...)
	}
	slices.SortFunc(all, func(a, b localEmission) int { return int(a.number - b.number) })
	return all
}

func (t *Local) leave(thread string, s *localSubscriber) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.subscribers[thread], s); len(t.subscribers[thread]) == 0 {
		delete(t.subscribers, thread)
	}
}

// localSubscriber is a reader, and what is on its way to it.
type localSubscriber struct {
	mu     sync.Mutex
	behind []Emission
	bytes  int
	news   chan struct{} // has an element while there may be more
}

// add puts an emission on its way, unless the reader is too far behind: the gap tells it.
func (s *localSubscriber) add(e Emission) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.behind) == LiveBacklog || s.bytes+LiveSize(e) > LiveBacklogBytes {
		return
	}
	s.behind = append(s.behind, e)
	s.bytes += LiveSize(e)
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// hand gives the reader what is on its way, until ctx is done.
func (s *localSubscriber) hand(ctx context.Context, out chan<- Emission) {
	for {
		select {
		case <-s.news:
		case <-ctx.Done():
			return
		}
		for e, more := s.next(); more; e, more = s.next() {
			select {
			case out <- e:
			case <-ctx.Done():
				return
			}
		}
	}
}

// next takes the first emission off the way.
func (s *localSubscriber) next() (e Emission, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.behind) == 0 {
		s.behind = nil
		return e, false
	}
	e, s.behind[0] = s.behind[0], Emission{}
	s.behind = s.behind[1:]
	s.bytes -= LiveSize(e)
	return e, true
}

// Emission is what a node emitted with superstep.Emit or superstep.EmitMessage, or that a repeated attempt voids it, on its way
// through a [Transport].
type Emission = graphadapter.LiveEmission

// Task names a task that emits, or has ended.
type Task = graphadapter.LiveTask

// Transport carries what nodes emit to the readers of streams while the nodes run. Give the same one to WorkerConfig and
// ClientConfig, or two ends of the same.
//
// A transport keeps what the tasks under way have emitted, of all their executions, and hands that to whoever subscribes:
// a reader may come at any moment of a node's life. It forgets a task with Ended. A worker that is lost says nothing any
// more, so a transport also bounds what it keeps, and then forgets a task as a whole: emissions with a gap before them are
// of no use to readers.
//
// A transport is an addition: the node's result holds the same emissions, durably, and readers take from there what did not
// come live, each once. So a transport may lose emissions, deliver them twice, or late. Of one task it must not swap them.
//
// It is safe for concurrent use. Package graphtest/transporttest tests one.
type Transport interface {
	// Publish hands out an emission, without waiting for those who listen: the node waits for Publish, for 250 ms at most.
	// After an error the rest of that execution is not published.
	Publish(ctx context.Context, e Emission) error
	// Ended says that a task is over, after the last of its emissions: what is kept of it can be forgotten, because its
	// result has it. A task that is to run again is not over.
	Ended(ctx context.Context, task Task) error
	// Subscribe returns what the thread's tasks under way have emitted so far, and then what is published of the thread, with
	// nothing missed in between. The channel is closed after ctx is done, or when nothing more can come; readers then go on
	// with results alone.
	Subscribe(ctx context.Context, thread string) (<-chan Emission, error)
}
