package serve

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"time"

	"github.com/google/uuid"

	"superstep.dev/serve/access"
	"superstep.dev/serve/assistant"
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
	a, err := takenIn(r, s, body)
	if err == nil {
		err = a.begin(r.Context(), s, stage)
	}
	return a, err
}

// takenIn is a request for a run that is not refused. Nothing runs yet.
func takenIn(r *http.Request, s *Server, body runRequest) (*asking, error) {
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
	if a.run, err = s.run(ctx, there, of, spec, body); err != nil {
		return err
	}
	if err := checkSizes(a.run.Start); err != nil {
		return err
	}
	if err := s.noApproval(ctx, there, body); err != nil {
		return err
	}
	if err := a.answersNull(ctx, s, there); err != nil {
		return err
	}
	if a.run.Start.By = a.by; body.Command == nil {
		a.run.Start.Requester = a.by
	}
	a.run.Metadata = withGraph(of.Graph, ofAssistant(of, there), body.Config.Metadata, a.run.Metadata)
	a.run.Forget = a.apart && body.OnCompletion != "keep" && body.OnCompletion != "complete"
	return nil
}

// checkSizes refuses an input or an answer that no run can be given: it would be a run that fails, after clients have shown it as sent.
func checkSizes(start thread.StartRequest) error {
	answer := 0
	if start.Resume != nil {
		answer = len(raw(start.Resume))
	}
	switch {
	case len(start.Input) > thread.MostInput:
		return refuse(http.StatusRequestEntityTooLarge, "the input has %d bytes, at most %d can be stored: keep what is large elsewhere, and send a reference to it",
			len(start.Input), thread.MostInput)
	case answer > thread.MostAnswer:
		return refuse(http.StatusRequestEntityTooLarge, "the answer has %d bytes, at most %d can be taken: keep what is large elsewhere, and send a reference to it",
			answer, thread.MostAnswer)
	}
	return nil
}

// there is the thread of the run. One that is the run's own is made when the run begins: a request that is refused leaves none.
func (a *asking) there(ctx context.Context, s *Server) (record.Thread, error) {
	if !a.apart || !a.create {
		return s.thereFor(ctx, a.thread.ID, a.create, a.request.ofThread())
	}
	metadata, err := marked(ctx, access.Resource{Kind: access.Threads, ID: a.thread.ID})
	return record.Thread{ID: a.thread.ID, Under: a.thread.ID, Metadata: metadata}, err
}

// begin asks for the run on its thread.
func (a *asking) begin(ctx context.Context, s *Server, stage string) error {
	if a.apart && a.create {
		if _, err := s.thereFor(ctx, a.thread.ID, true, a.request.ofThread()); err != nil {
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

// ofAssistant is what a run has of its assistant's metadata: not who made that, and nothing that the thread says itself.
func ofAssistant(a assistant.Assistant, t record.Thread) object {
	out := maps.Clone(a.Metadata)
	maps.DeleteFunc(out, func(name string, _ json.RawMessage) bool {
		_, said := t.Metadata[name]
		return said || name == "created_by"
	})
	return out
}

// ofThread is the metadata of a thread that is made for the run: the run's, by which clients then find the thread.
func (r *runRequest) ofThread() object {
	out := object{}
	maps.Copy(out, r.Config.Metadata)
	maps.Copy(out, r.Metadata)
	return out
}

// thereFor makes the thread of a run, with that metadata, where it is to be made, and refuses a thread that is not there.
func (s *Server) thereFor(ctx context.Context, id string, create bool, metadata object) (record.Thread, error) {
	if !create {
		t, _, err := s.recordOf(ctx, id)
		return t, err
	}
	metadata, err := marked(ctx, access.Resource{Kind: access.Threads, ID: id, Metadata: metadata})
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

// answersNull makes a command that is {"resume": null} and nothing else the answer null, where the thread asks one question that takes it.
// Elsewhere it answers nothing, as clients know it.
func (a *asking) answersNull(ctx context.Context, s *Server, t record.Thread) error {
	if c := a.request.Command; c == nil || string(c.Resume) != "null" || given(c.Update) || given(c.Goto) {
		return nil
	}
	v, err := s.client.State(ctx, thread.StateRequest{Thread: t.Under})
	if errors.Is(err, thread.ErrNotFound) {
		return nil // the run says so
	}
	if err == nil && len(v.Questions) == 1 && takesNull(v.Questions[0].Schema) {
		a.run.Start.Resume = resumeOf(a.request.Command.Resume)
	}
	return err
}

// beat is how often a response that waits says that it is still there.
const beat = 5 * time.Second

func (s *Server) waitRun(w http.ResponseWriter, r *http.Request) error {
	var body runRequest
	if err := read(w, r, &body); err != nil {
		return err
	}
	a, err := takenIn(r, s, body)
	if err != nil {
		return err
	}
	defer a.keepThread(s)()
	at, end := a.location(), make(chan outcome, 1)
	go func() { // a run that ends at once is asked for and waited for in one
		err := a.begin(r.Context(), s, record.StageEnded)
		if err != nil {
			end <- outcome{err: err}
			return
		}
		end <- untilOver(r.Context(), s.records, a.thread, a.run.ID)
	}()
	return s.awaitValues(w, r, at, a.run.ID, end, func() { a.leave(s) })
}

// keepThread keeps a thread that is only for the run until the caller has read what the run has led to: then done is called.
func (a *asking) keepThread(s *Server) (done func()) {
	if a.run.Read = a.run.Forget; !a.run.Read {
		return func() {}
	}
	id := a.thread.ID
	return func() {
		go func() { // the caller has what it has asked for
			ctx, stop := context.WithTimeout(context.Background(), leaving)
			defer stop()
			_, err := s.records.Remove(ctx, id, a.run.ID)
			if err != nil && !errors.Is(err, record.ErrMissing) && !errors.Is(err, record.ErrBusy) { // its caller may have left before the end
				s.log.Warnw("the thread of a run that has ended is deleted later", "thread", id, "error", err)
			}
		}()
	}
}

// outcome is a thread whose run has ended.
type outcome struct {
	thread record.Thread
	err    error
}

// untilOver waits for a run's end.
func untilOver(ctx context.Context, records *record.Records, t record.Thread, run string) (e outcome) {
	if e.thread = t; t.Run(run) != nil && !t.Run(run).Over() {
		e.thread, e.err = records.Await(ctx, t, run, record.StageEnded)
	}
	return e
}

// awaitValues waits for a run's end, and answers with its values. While it waits a newline comes now and then: what is refused is
// refused before. left is called when the caller has gone meanwhile.
func (s *Server) awaitValues(w http.ResponseWriter, r *http.Request, at, run string, end <-chan outcome, left func()) error {
	begin := func() {
		for name, value := range map[string]string{"Content-Type": "application/json", "Content-Location": at, "Location": at + "/join"} {
			w.Header().Set(name, value)
		}
	}
	sent, tick := false, time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case e := <-end:
			if e.err != nil && gone(r.Context()) {
				left()
			}
			if e.err != nil && sent { // the status has gone: clients raise what is said so
				answerOn(w, map[string]any{"__error__": record.Failure{Type: "Error", Message: faultOf(e.err).detail}})
				return nil
			}
			if e.err != nil {
				return e.err
			}
			s.index.note(e.thread.Line())
			begin()
			return s.values(w, r, e.thread, run)
		case <-tick.C:
			begin()
			sent = true
			if _, err := w.Write([]byte("\n")); err == nil {
				err = http.NewResponseController(w).Flush()
				if err != nil {
					s.log.Debugw("a response was not sent on", "error", err)
				}
			}
		}
	}
}

// leaving bounds what is done for a caller who has gone.
const leaving = 30 * time.Second

// leave cancels a run whose caller has gone and wanted that.
func (s *Server) leave(threadID, run, who string, cancel bool) {
	if !cancel || s.draining.Load() {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), leaving)
	defer stop()
	if _, err := s.records.Cancel(ctx, threadID, who, record.Interrupt, run); err != nil && !errors.Is(err, record.ErrMissing) {
		s.log.Warnw("a run whose caller has gone was not cancelled", "thread", threadID, "run", run, "error", err)
	}
}

// values answers with what a run has led to.
func (s *Server) values(w http.ResponseWriter, r *http.Request, t record.Thread, run string) error {
	at := t.Run(run)
	if at != nil && at.Failure != nil {
		answerOn(w, map[string]any{"__error__": at.Failure})
		return nil
	}
	v, err := s.client.State(r.Context(), thread.StateRequest{Thread: t.Under})
	if errors.Is(err, thread.ErrNotFound) {
		answerOn(w, object{})
		return nil
	}
	if err != nil {
		return err
	}
	x, err := s.renderer(r.Context(), t, v.Graph)
	if err != nil {
		return err
	}
	out, err := s.outputAt(r.Context(), x, v)
	if err != nil {
		return err
	}
	if state := x.state(v, nil); len(state.Interrupts) > 0 {
		out["__interrupt__"] = raw(state.Interrupts)
	}
	answerOn(w, out)
	return nil
}

// answerOn writes a value behind what was written already.
func answerOn(w http.ResponseWriter, v any) {
	if _, err := w.Write(raw(v)); err != nil {
		return // the client has gone
	}
}
