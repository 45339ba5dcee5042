package serve

import (
	"context"
	"errors"
	"maps"
	"net/http"

	"github.com/google/uuid"

	"superstep.dev/serve/access"
	"superstep.dev/serve/record"
	"superstep.dev/thread"
)

// asking is a run that was asked for, on its thread.
type asking struct {
	request runRequest
	run     record.Run
	thread  record.Thread
	// by is who asks, "" where nobody was asked who they are.
	by string
	// apart says that the thread is the run's own, and create that it is made if it is not there.
	apart, create bool
}

// location is the path of the run.
func (a *asking) location() string { return locationOf(a.thread.ID, a.run.ID) }

// locationOf is the path of a run: clients read the ids of run and thread from it.
func locationOf(thread, run string) string { return "/threads/" + thread + "/runs/" + run }

// ask takes in a request for a run, and returns when the run is at a stage or has ended, or after a while.
func (s *Server) ask(r *http.Request, body runRequest, stage string) (*asking, error) {
	a, err := s.asked(r, body)
	if err == nil {
		err = a.begin(r.Context(), s, stage)
	}
	return a, err
}

// asked is a request for a run that is not refused. Nothing runs yet.
func (s *Server) asked(r *http.Request, body runRequest) (*asking, error) {
	a := &asking{request: body, by: by(r.Context()), apart: r.PathValue("thread_id") == "", create: body.IfNotExists == "create"}
	var err error
	if a.apart {
		if body.Command != nil && given(body.Command.Resume) {
			return nil, refuse(http.StatusBadRequest, "only a thread has questions: send the answer to its runs")
		}
		own, err := uuid.NewV7()
		if err != nil {
			return nil, err
		}
		a.thread.ID, a.create = own.String(), true
	} else if a.thread.ID, err = threadIn(r); err != nil {
		return nil, err
	}
	if err := a.check(r.Context(), s); err != nil {
		return nil, err
	}
	return a, nil
}

// check refuses what cannot run, and completes the run.
func (a *asking) check(ctx context.Context, s *Server) error {
	body := &a.request
	if err := body.check(); err != nil {
		return err
	}
	there, err := a.there(ctx, s)
	if err != nil {
		return err
	}
	of, err := assistants{s}.named(ctx, body.AssistantID)
	if err != nil {
		return err
	}
	spec, err := s.spec(ctx, of.Graph)
	if err != nil {
		return err
	}
	if err := s.goOn(ctx, there.Under, body); err != nil {
		return err
	}
	if a.run, err = s.run(ctx, a.thread.ID, of, spec, body); err != nil {
		return err
	}
	if err := s.noApproval(ctx, there, body); err != nil {
		return err
	}
	if a.run.Start.By = a.by; body.Command == nil {
		a.run.Start.Requester = a.by
	}
	a.run.Metadata = withGraph(of.Graph, body.Config.Metadata, a.run.Metadata)
	a.run.Forget = a.apart && body.OnCompletion != "keep" && body.OnCompletion != "complete"
	return nil
}

// there is the thread of the run. One that is the run's own is made when the run begins: a request that is refused leaves none.
func (a *asking) there(ctx context.Context, s *Server) (record.Thread, error) {
	if !a.apart || !a.create {
		return s.thereFor(ctx, a.thread.ID, a.create)
	}
	_, err := marked(ctx, access.Resource{Kind: access.Threads, ID: a.thread.ID})
	return record.Thread{ID: a.thread.ID, Under: a.thread.ID}, err
}

// begin asks for the run on its thread.
func (a *asking) begin(ctx context.Context, s *Server, stage string) error {
	if a.apart && a.create {
		if _, err := s.thereFor(ctx, a.thread.ID, true); err != nil {
			return err
		}
	}
	a.run.Wait = stage
	t, err := s.records.Run(ctx, a.thread.ID, a.run)
	if err == nil {
		a.thread = t
		s.index.note(t.Line())
	}
	return err
}

// leave cancels the run if its caller, who has gone, wanted that. Whether a request of which nothing was heard has come to the record
// nobody knows: the run is asked for again, so that it is there to be cancelled, and comes to nothing if it gets there later.
func (a *asking) leave(s *Server) {
	if a.request.OnDisconnect != "cancel" || s.draining.Load() {
		return
	}
	if a.thread.Run(a.run.ID) == nil {
		ctx, stop := context.WithTimeout(context.Background(), leaving)
		defer stop()
		run := a.run
		run.Wait = ""
		if _, err := s.records.Run(ctx, a.thread.ID, run); err != nil {
			if !errors.Is(err, record.ErrMissing) && !errors.Is(err, record.ErrBusy) {
				s.log.Warnw("a run whose caller has gone was not cancelled", "thread", a.thread.ID, "run", run.ID, "error", err)
			}
			return
		}
	}
	s.leave(a.thread.ID, a.run.ID, a.by, true)
}

// withGraph is the metadata of a run: the graph, that of its configuration, and its own, each over the one before.
func withGraph(graph string, metadata ...object) object {
	out := object{"graph_id": raw(graph)}
	for _, m := range metadata {
		maps.Copy(out, m)
	}
	return out
}

// thereFor makes the thread of a run where it is to be made, and refuses a thread that is not there.
func (s *Server) thereFor(ctx context.Context, id string, create bool) (record.Thread, error) {
	if !create {
		t, _, err := s.recordOf(ctx, id)
		return t, err
	}
	metadata, err := marked(ctx, access.Resource{Kind: access.Threads, ID: id})
	if err != nil {
		return record.Thread{}, err
	}
	t, err := s.records.Create(ctx, id, metadata, true)
	if err != nil {
		return t, err
	}
	s.index.note(t.Line())
	_, err = mayFind(ctx, resourceOf(t))
	return t, err
}

// noApproval refuses answers to questions that ask for an approval: those pass a gate, which knows who answers.
func (s *Server) noApproval(ctx context.Context, t record.Thread, body *runRequest) error {
	if body.Command == nil || !given(body.Command.Resume) {
		return nil
	}
	v, err := s.client.State(ctx, thread.StateRequest{Thread: t.Under})
	if errors.Is(err, thread.ErrNotFound) {
		return nil // the run says so
	}
	for _, q := range v.Questions {
		if q.Approval != nil {
			return refuse(http.StatusForbidden, "the thread asks for an approval, which a plain answer is not: superstep approve %s %s", t.Under, q.ID)
		}
	}
	return err
}
