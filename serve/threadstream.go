package serve

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"superstep.dev/serve/record"
	"superstep.dev/thread"
)

// What of a thread a stream can tell: what its runs stream in the modes that they were asked for, when they begin and end, and how its
// state is when it was updated from outside.
const (
	tellsRuns    = "run_modes"
	tellsLife    = "lifecycle"
	tellsUpdates = "state_update"
)

// threadFollowing is one client's way along a thread, over its runs.
type threadFollowing struct {
	server *Server
	out    *sse
	tells  []string
	// told are the runs of which there is nothing to tell any more.
	told map[string]bool
	// from is what the client has of a run, of which it has not all.
	from map[string]rank
	// last is the run that was told last, "" for none.
	last string
}

// ended is behind a run's id in the id of the event that says that the run is done.
const ended = "done"

// threadStream follows the runs of a thread, one after the other, until the client goes.
func (s *Server) threadStream(w http.ResponseWriter, r *http.Request) error {
	t, err := s.record(r)
	if err != nil {
		return err
	}
	f := &threadFollowing{server: s, tells: listed(r, "stream_modes"), told: map[string]bool{}, from: map[string]rank{}}
	if len(f.tells) == 0 {
		f.tells = []string{tellsRuns}
	}
	for _, one := range f.tells {
		if !slices.Contains([]string{tellsRuns, tellsLife, tellsUpdates}, one) {
			return refuse(http.StatusUnprocessableEntity, "stream_modes %q is none of %s, %s and %s", one, tellsRuns, tellsLife, tellsUpdates)
		}
	}
	f.begin(t, r.Header.Get("Last-Event-ID"))
	f.out = newSSE(w)
	defer f.out.close()
	followed := s.records.Follow(t)
	defer followed.Leave()
	edits := t.Edits
	for {
		for _, run := range t.Runs {
			if run.Delay > 0 && run.Status == record.Pending {
				continue // others may go first: it is told of once it begins
			}
			if err := f.one(r.Context(), t, run); err != nil {
				(&streaming{server: s, out: f.out, thread: t.ID, run: run.ID}).ended(r.Context(), err)
				return nil
			}
		}
		if t.Edits > edits {
			edits = t.Edits
			if err := f.edited(r.Context(), t); err != nil {
				return nil // the client asks again
			}
		}
		next, err := followed.Until(r.Context(), func(next record.Thread) bool { return next.Version > t.Version })
		if err != nil {
			return nil // the client has gone, or the thread
		}
		t = next
	}
}

// begin finds out what the client has. Behind an event that it has nothing is left out: the ids are the thread's stream's, whatever its
// runs were asked for. Who has none begins with what is under way, and with 0 with the runs before that are resumable.
func (f *threadFollowing) begin(t record.Thread, lastEvent string) {
	run, at, _ := strings.Cut(lastEvent, ":")
	has := slices.IndexFunc(t.Runs, func(r record.Run) bool { return r.ID == run })
	all := lastEvent == "0"
	for i, r := range t.Runs {
		switch {
		case i == has && at != ended:
			f.from[r.ID] = rankIn(at)
		case i <= has, has < 0 && r.Over() && !(all && r.Resumable):
			f.told[r.ID], f.last = true, r.ID
		}
	}
}

func (f *threadFollowing) wants(what string) bool { return slices.Contains(f.tells, what) }

// one sends the events of one of the thread's runs, and that it is done.
func (f *threadFollowing) one(ctx context.Context, t record.Thread, run record.Run) error {
	if f.told[run.ID] {
		return nil
	}
	f.told[run.ID], f.last = true, run.ID
	if !f.wants(tellsRuns) && !f.wants(tellsLife) {
		return nil
	}
	s := &streaming{server: f.server, out: f.out, thread: t.ID, run: run.ID, resumable: true, prefix: run.ID + ":"}
	if f.wants(tellsRuns) {
		var err error
		if s.modes, s.subgraphs, err = askedFor(run); err != nil {
			return err
		}
	}
	if at, ok := f.from[run.ID]; ok {
		s.after = &at
	}
	if err := s.follow(ctx, t); err != nil {
		return err
	}
	return f.out.send("metadata", map[string]string{"status": "run_done", "run_id": run.ID}, run.ID+":"+ended)
}

// edited sends the state of a thread that was updated from outside.
func (f *threadFollowing) edited(ctx context.Context, t record.Thread) error {
	if !f.wants(tellsUpdates) {
		return nil
	}
	v, err := f.server.client.State(ctx, thread.StateRequest{Thread: t.Under})
	if err != nil {
		return err
	}
	x, err := f.server.renderer(ctx, t, v.Graph)
	if err != nil {
		return err
	}
	return f.out.send(tellsUpdates, map[string]any{"thread_id": t.ID, "state": x.state(v, nil)}, f.last+":"+ended)
}
