package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"superstep.dev/serve/access"
	"superstep.dev/serve/record"
	"superstep.dev/thread"
)

// The number of an event, its seq, is the ordinal of its run above runBits, and in these its rank among the run's events of all
// channels. So it is the same whoever reads it, at whichever server, and whatever else they ask for. The run's end has the last
// place, or is before the ends of subgraphs that ask: it has its number also when what was before it is no longer known.
const (
	runBits   = 34
	lastPlace = 1<<runBits - 1
	// mostOrdinal bounds the runs with events of a thread: numbers are exact in JavaScript.
	mostOrdinal = 1 << (53 - runBits)
)

// appliedThrough is a number below those of the runs that have not ended: what a command brings about has greater ones.
func appliedThrough(t record.Thread) int64 {
	for _, run := range t.Runs {
		if run.Ordinal > 0 && !run.Over() {
			return run.Ordinal << runBits
		}
	}
	return (t.Commands + 1) << runBits
}

// events streams events of the runs of a thread that commands began, from the first one on, until the client goes.
func (s commands) events(w http.ResponseWriter, r *http.Request) error {
	wanted, err := subscriptionIn(w, r)
	if err != nil {
		return err
	}
	id, err := threadIn(r)
	if err != nil {
		return err
	}
	f := &following{server: s.Server, thread: id, wanted: wanted}
	t, err := f.open(w, r)
	if f.out != nil {
		defer f.out.close()
	}
	if err != nil && f.out != nil {
		return nil // the client has gone, or somebody else has made the thread
	}
	if err != nil {
		return err
	}
	f.watch = s.records.Follow(t)
	defer f.watch.Leave()
	err = f.runs(r.Context())
	if r.Context().Err() == nil && !errors.Is(err, errSent) && !errors.Is(err, record.ErrMissing) {
		s.log.Warnw("a stream of events ended", "thread", t.ID, "error", err) // its client asks again
	}
	return nil
}

// following is one client's way through the runs of a thread.
type following struct {
	server *Server
	thread string
	wanted subscription
	watch  *record.Follower
	out    *sse
	// run is the one that is told, and ranks those of its events.
	run   record.Run
	ranks ranks
}

// open begins the stream, and returns the thread when it is there: clients ask for its events before their first command makes it.
func (f *following) open(w http.ResponseWriter, r *http.Request) (record.Thread, error) {
	t, err := f.server.records.Get(r.Context(), f.thread)
	if errors.Is(err, record.ErrMissing) {
		if _, err := granted(r.Context(), access.Resource{Kind: access.Threads, ID: f.thread}); err != nil {
			return t, err
		}
		f.out = newSSE(w)
		t, err = f.server.records.Made(r.Context(), f.thread)
	}
	if err == nil {
		_, err = mayFind(r.Context(), resourceOf(t))
	}
	if err == nil && f.out == nil {
		f.out = newSSE(w)
	}
	return t, err
}

// runs tells of one run after the other, until it cannot go on: the error says why.
func (f *following) runs(ctx context.Context) error {
	done := f.wanted.Since >> runBits
	if f.wanted.Since&lastPlace < lastPlace {
		done = max(done-1, 0) // the client has only a part of that run
	}
	for {
		t, err := f.watch.Until(ctx, func(t record.Thread) bool { return after(t, done) != nil })
		if err != nil {
			return err
		}
		f.run = *after(t, done)
		if err := f.told(ctx); err != nil {
			return err
		}
		done = f.run.Ordinal
	}
}

// tries is how often a run is read anew from its beginning when its stream breaks off.
const tries = 3

// told tells of one run. A stream that breaks off is read anew: what the client has is counted, and not sent again.
func (f *following) told(ctx context.Context) (err error) {
	for range tries {
		f.ranks = ranks{}
		if err = f.one(ctx); err == nil || ctx.Err() != nil || errors.Is(err, errSent) || errors.Is(err, record.ErrMissing) {
			return err
		}
	}
	return err
}

// after is the first run behind that ordinal, nil for none.
func after(t record.Thread, ordinal int64) *record.Run {
	for i := range t.Runs {
		if t.Runs[i].Ordinal > ordinal {
			return &t.Runs[i]
		}
	}
	return nil
}

// one tells of one run, from its beginning to its end.
func (f *following) one(ctx context.Context) error {
	if f.run.Ordinal >= mostOrdinal {
		return fmt.Errorf("thread %s has more runs than can be numbered", f.thread)
	}
	t, err := f.watch.Until(ctx, func(t record.Thread) bool {
		run := t.Run(f.run.ID)
		return run == nil || run.Over() || run.Place != ""
	})
	if err != nil {
		return err
	}
	if run := t.Run(f.run.ID); run != nil {
		f.run = *run
	}
	x, err := f.server.renderer(ctx, t, graphOf(t, f.run))
	if err != nil {
		return err
	}
	n := newNarrator(x, f.run)
	if err := f.tell(nil, n.began()); err != nil {
		return err
	}
	if err := f.parts(ctx, t, n); err != nil {
		return err
	}
	t, err = f.watch.Until(ctx, func(t record.Thread) bool { run := t.Run(f.run.ID); return run == nil || run.Over() })
	if err != nil {
		return err
	}
	run := t.Run(f.run.ID)
	if err := f.tell(nil, n.rest(run)...); err != nil {
		return err
	}
	ended := n.ended(run)
	for i, e := range ended {
		if err := f.send(e, lastPlace-int64(len(ended)-1-i)); err != nil {
			return err
		}
	}
	return nil
}

// parts tells what the thread streams of the run. What the server has no more is left out.
func (f *following) parts(ctx context.Context, t record.Thread, n *narrator) error {
	if f.run.Place == "" {
		return nil
	}
	r := thread.StreamRequest{Thread: t.Under, Modes: narrated, Subgraphs: true, Ordered: true, Invocation: f.run.Place}
	for p, err := range f.server.client.Stream(ctx, r) {
		if errors.Is(err, thread.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f.tell(&p, n.of(p)...); err != nil {
			return err
		}
	}
	return nil
}

// numbered is an event as clients get it.
type numbered struct {
	Type   string `json:"type"`
	ID     string `json:"event_id"`
	Seq    int64  `json:"seq"`
	Method string `json:"method"`
	Params struct {
		Namespace []string `json:"namespace"`
		Timestamp int64    `json:"timestamp"` // milliseconds
		Data      any      `json:"data"`
	} `json:"params"`
}

// tell numbers events that are of a part, nil for none, and sends them.
func (f *following) tell(p *thread.Part, all ...happened) error {
	for _, e := range all {
		place := f.ranks.next(p).number()
		if place >= lastPlace {
			return fmt.Errorf("run %s has more events than can be numbered", f.run.ID)
		}
		if err := f.send(e, place); err != nil {
			return err
		}
	}
	return nil
}

// send sends an event, if it is wanted and new to the client.
func (f *following) send(e happened, place int64) error {
	seq := f.run.Ordinal<<runBits + place
	if seq <= f.wanted.Since {
		return nil
	}
	f.wanted.Since = seq
	if !f.wanted.wants(e) {
		return nil
	}
	out := numbered{Type: "event", ID: f.run.ID + ":" + strconv.FormatInt(place, 10), Seq: seq, Method: e.method}
	if e.channel == channelLifecycle {
		out.ID = "synth:" + out.ID // clients read there which run it is
	}
	out.Params.Namespace, out.Params.Timestamp, out.Params.Data = e.space, stamp(e.at), e.data
	if f.out.send(e.method, out, strconv.FormatInt(seq, 10)) != nil {
		return errSent
	}
	return nil
}

// stamp is a time in milliseconds; one that is not known is now.
func stamp(at time.Time) int64 {
	if at.IsZero() {
		at = time.Now()
	}
	return at.UnixMilli()
}
