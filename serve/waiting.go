package serve

import (
	"context"
	"errors"
	"net/http"
	"time"

	"superstep.dev/serve/access"
	"superstep.dev/serve/record"
	"superstep.dev/thread"
)

// beat is how often a response that waits says that it is still there.
const beat = 5 * time.Second

func (s *Server) waitRun(w http.ResponseWriter, r *http.Request) error {
	var body runRequest
	if err := read(w, r, &body); err != nil {
		return err
	}
	a, err := s.asked(r, body)
	if err != nil {
		return err
	}
	at, end := a.location(), make(chan outcome, 1)
	go func() { // a run that ends at once is asked for and waited for in one
		err := a.begin(r.Context(), s, record.StageEnded)
		if err != nil {
			end <- outcome{err: err}
			return
		}
		end <- s.untilOver(r.Context(), a.thread, a.run.ID)
	}()
	return s.awaitValues(w, r, at, a.run.ID, end, func() { a.leave(s) })
}

// outcome is a thread whose run has ended.
type outcome struct {
	thread record.Thread
	err    error
}

// untilOver waits for a run's end.
func (s *Server) untilOver(ctx context.Context, t record.Thread, run string) (e outcome) {
	if e.thread = t; t.Run(run) != nil && !t.Run(run).Over() {
		e.thread, e.err = s.records.Await(ctx, t, run, record.StageEnded)
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
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case e := <-end:
			if e.err != nil && gone(r.Context()) {
				left()
			}
			if e.err != nil {
				return e.err
			}
			s.index.note(e.thread.Line())
			begin()
			return s.values(w, r, e.thread, run)
		case <-tick.C:
			begin()
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

// joined is the run that a path names, to be waited for, and whether it is to be cancelled when the caller goes: that takes more than
// reading it.
func (s *Server) joined(r *http.Request) (t record.Thread, run *record.Run, cancel bool, err error) {
	if cancel = affirmed(r, "cancel_on_disconnect"); cancel {
		r = r.WithContext(as(r.Context(), access.Threads, access.Run))
	}
	t, run, err = s.runIn(r)
	return t, run, cancel, err
}

func (s *Server) joinRun(w http.ResponseWriter, r *http.Request) error {
	t, run, cancel, err := s.joined(r)
	if err != nil {
		return err
	}
	end := make(chan outcome, 1)
	go func() { end <- s.untilOver(r.Context(), t, run.ID) }()
	return s.awaitValues(w, r, locationOf(t.ID, run.ID), run.ID, end, func() { s.leave(t.ID, run.ID, by(r.Context()), cancel) })
}
