package activities

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// These tests hold what finds inputs to its bounds; that it finds them after crashes is tested on a server.

func valueOf(text string) (pregel.Value, graphadapter.Reference) {
	v := pregel.Value(fmt.Sprintf("%q", text))
	return v, graphadapter.Reference{Digest: graphadapter.DigestOf(v), Size: len(v)}
}

func request(refs ...graphadapter.Reference) *graphadapter.NodeRequest {
	req := &graphadapter.NodeRequest{}
	for i, ref := range refs {
		ref.Part, ref.Channel = graphadapter.PartChannel, fmt.Sprintf("channel-%d", i)
		req.References = append(req.References, ref)
	}
	return req
}

// past is a run's past: what it sent, and how often somebody went through it.
type pastReader struct {
	mu    sync.Mutex
	sent  []pregel.Value
	trips int
	err   error
	// gate, when set, holds a trip until it is closed; began gets an element when one begins.
	gate  chan struct{}
	began chan struct{}
}

func (p *pastReader) rebuild(_ context.Context, _ Run, pass func(pregel.Value)) error {
	p.mu.Lock()
	p.trips++
	gate, sent, err := p.gate, p.sent, p.err
	p.mu.Unlock()
	if p.began != nil {
		p.began <- struct{}{}
	}
	if gate != nil {
		<-gate
	}
	for _, v := range sent {
		pass(v)
	}
	return err
}

func (p *pastReader) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trips
}

var aRun = Run{Namespace: "default", WorkflowID: "thread", RunID: "run"}

func TestACacheKeepsWhatWasUsedLast(t *testing.T) {
	t.Parallel()
	c := newCache(10)
	c.put("a", pregel.Value("1234"))
	c.put("b", pregel.Value("1234"))
	if _, ok := c.get("a"); !ok {
		t.Fatal("a is gone before there was need")
	}
	c.put("c", pregel.Value("123456"))
	c.put("far too large", pregel.Value("12345678901"))
	c.put("c", pregel.Value("123456"))
	for digest, want := range map[string]bool{"a": true, "b": false, "c": true, "far too large": false} {
		if _, ok := c.get(digest); ok != want {
			t.Errorf("%s is there: %v, want %v", digest, ok, want)
		}
	}
	if n := c.values.Len(); n != 2 {
		t.Errorf("the cache keeps %d values", n)
	}
}

// TestAValueIsEachTasksOwn: a node that changes what it was given must not change what the next one is given.
func TestAValueIsEachTasksOwn(t *testing.T) {
	t.Parallel()
	v, ref := valueOf("state")
	i := NewInputs(0, (&pastReader{err: errors.New("not needed")}).rebuild)
	i.Sent(ref.Digest, v)
	for range 2 {
		req := request(ref, ref)
		if err := i.fill(t.Context(), aRun, req); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"channel-0", "channel-1"} {
			if got := req.Task.State[name].Value(); string(got) != string(v) {
				t.Fatalf("%s is %s", name, got)
			} else {
				got[1] = 'X'
			}
		}
		if req.References != nil {
			t.Error("the references are still there")
		}
	}
}

// TestOneTripForAll: many tasks that want the same go through the past once; those that want something else share the
// trip after it.
func TestOneTripForAll(t *testing.T) {
	t.Parallel()
	one, toOne := valueOf("one")
	two, toTwo := valueOf("two")
	six, toSix := valueOf("six")
	p := &pastReader{sent: []pregel.Value{one, two, one, six}, gate: make(chan struct{}), began: make(chan struct{}, 1000)}
	i := NewInputs(0, p.rebuild)
	errs := make(chan error)
	ask := func(ref graphadapter.Reference, want pregel.Value) {
		req := request(ref)
		err := i.fill(t.Context(), aRun, req)
		if err == nil && req.Task.State["channel-0"].String() != string(want) {
			err = fmt.Errorf("got %s, want %s", req.Task.State["channel-0"], want)
		}
		errs <- err
	}
	go ask(toOne, one)
	<-p.began
	for range 499 {
		go ask(toOne, one)
	}
	for range 50 {
		go ask(toTwo, two)
		go ask(toSix, six)
	}
	waiting(i.rebuild, func(of *flights) bool { return of.next != nil && len(of.next.wanted) == 2 })
	close(p.gate)
	for range 600 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	if n := p.count(); n != 2 {
		t.Errorf("%d trips for 600 tasks, want 2", n)
	}
	if len(i.rebuild.runs) != 0 {
		t.Errorf("%d runs are still on record", len(i.rebuild.runs))
	}
}

// waiting waits until the trips of the run are as wanted.
func waiting(b *rebuilder, wanted func(*flights) bool) {
	for {
		b.mu.Lock()
		of := b.runs[aRun]
		ok := of != nil && wanted(of)
		b.mu.Unlock()
		if ok {
			return
		}
		runtime.Gosched()
	}
}

// TestFewTripsAtOnce: each holds a whole history.
func TestFewTripsAtOnce(t *testing.T) {
	t.Parallel()
	v, ref := valueOf("one")
	p := &pastReader{sent: []pregel.Value{v}, gate: make(chan struct{}), began: make(chan struct{}, 10)}
	i := NewInputs(1, p.rebuild)
	errs := make(chan error)
	for n := range 10 {
		go func() { errs <- i.fill(t.Context(), Run{RunID: fmt.Sprint(n)}, request(ref)) }()
	}
	for range maxRebuilds {
		<-p.began
	}
	waits := func() int {
		i.rebuild.mu.Lock()
		defer i.rebuild.mu.Unlock()
		return len(i.rebuild.runs)
	}
	for waits() < 10 {
		runtime.Gosched()
	}
	if n := p.count(); n != maxRebuilds {
		t.Errorf("%d trips at once", n)
	}
	close(p.gate)
	for range 10 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestAWrongValueIsNeverGiven: neither one that is not what it says it is, nor none at all.
func TestAWrongValueIsNeverGiven(t *testing.T) {
	t.Parallel()
	right, ref := valueOf("right")
	wrong, _ := valueOf("wrong")
	i := NewInputs(0, (&pastReader{sent: []pregel.Value{wrong}}).rebuild)
	req := request(ref)
	var lost *LostInputError
	if err := i.fill(t.Context(), aRun, req); !errors.As(err, &lost) || lost.Reference.Digest != ref.Digest || !strings.Contains(err.Error(), "reducers") {
		t.Errorf("a value that the past does not have reads as %v", err)
	}
	i.Sent(ref.Digest, wrong)
	var mistaken *graphadapter.WrongValueError
	if err := i.fill(t.Context(), aRun, req); !errors.As(err, &mistaken) || mistaken.Want.Digest != ref.Digest || mistaken.Digest != graphadapter.DigestOf(wrong) {
		t.Errorf("a wrong value reads as %v", err)
	}
	if req.Task.State != nil || req.References == nil {
		t.Errorf("the request was changed: %+v", req)
	}
	i = NewInputs(0, (&pastReader{err: errors.New("no history")}).rebuild)
	if err := i.fill(t.Context(), aRun, req); err == nil || !strings.Contains(err.Error(), "no history") {
		t.Errorf("a past that cannot be read reads as %v", err)
	}
	i.Sent(ref.Digest, right)
	if err := i.fill(t.Context(), aRun, req); err != nil || req.Task.State["channel-0"].String() != string(right) {
		t.Errorf("in the end: %v, %s", err, req.Task.State)
	}
}

// TestNobodyWaitsLongerThanItsTask: who is told to stop leaves the trip, which goes on for the others.
func TestNobodyWaitsLongerThanItsTask(t *testing.T) {
	t.Parallel()
	v, ref := valueOf("one")
	p := &pastReader{sent: []pregel.Value{v}, gate: make(chan struct{}), began: make(chan struct{}, 1)}
	i := NewInputs(0, p.rebuild)
	ctx, stop := context.WithCancelCause(t.Context())
	left, stayed := make(chan error), make(chan error)
	go func() { left <- i.fill(ctx, aRun, request(ref)) }()
	<-p.began
	go func() { stayed <- i.fill(t.Context(), aRun, request(ref)) }()
	enough := errors.New("enough")
	stop(enough)
	if err := <-left; !errors.Is(err, enough) {
		t.Errorf("who was stopped is told %v", err)
	}
	close(p.gate)
	if err := <-stayed; err != nil {
		t.Error(err)
	}
	if n := p.count(); n != 1 {
		t.Errorf("%d trips", n)
	}
}

// TestWhatCannotBeFoundIsNamed: which field of which node, or of a segment, which runs many.
func TestWhatCannotBeFoundIsNamed(t *testing.T) {
	_, ref := valueOf("right")
	ref.Part, ref.Channel = graphadapter.PartChannel, "order"
	lost := &LostInputError{Reference: ref}
	for node, says := range map[string]string{"pay": `node "pay" of graph "g" reads`, "": `the supersteps of graph "g" read`} {
		text := (&InputError{Graph: "g", Node: node, Thread: "t", Run: "r", Err: lost}).Error()
		if !strings.Contains(text, says) || !strings.Contains(text, `the field "order"`) || !strings.Contains(text, "run a worker with") || strings.Contains(text, `""`) {
			t.Error(text)
		}
	}
}
