package page

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"superstep.dev/approval"
	"superstep.dev/thread"
)

// desk answers what the protocol has no words for: approvals, and how a thread goes on after one.
type desk struct{ cfg Config }

// standing is how a thread stands.
type standing struct {
	// Running says that it is at work, also where no run of the protocol is under way: after an approval it goes on by itself.
	Running   bool      `json:"running"`
	Approvals []pending `json:"approvals"`
}

// pending is an approval that somebody is asked for, as the page shows it.
type pending struct {
	ID     string              `json:"id"`
	Schema json.RawMessage     `json:"schema"`
	Action thread.ApprovalView `json:"action"`
	// Approver is who the page can answer for, "" for nobody.
	Approver string `json:"approver"`
}

func (d desk) show(w http.ResponseWriter, r *http.Request) {
	v, err := d.cfg.Threads.State(r.Context(), thread.StateRequest{Thread: r.PathValue("thread")})
	if errors.Is(err, thread.ErrNotFound) { // it has not run yet
		v, err = thread.StateView{}, nil
	}
	if err != nil {
		d.fail(w, err)
		return
	}
	out := standing{Running: v.Status == thread.StatusRunning, Approvals: []pending{}}
	for _, q := range v.Questions {
		if q.Approval != nil {
			out.Approvals = append(out.Approvals, pending{q.ID, q.Schema, *q.Approval, d.approver()})
		}
	}
	answer(w, http.StatusOK, out)
}

func (d desk) approver() string {
	if d.cfg.Signer == nil {
		return ""
	}
	return d.cfg.Signer.Key().Owner.Person
}

// given is a person's answer to an approval, and what of it they have seen.
type given struct {
	ID         string         `json:"id"`
	Question   string         `json:"question"`
	Digest     string         `json:"digest"`
	ParamsHash string         `json:"params_hash"`
	Reply      approval.Reply `json:"reply"`
}

// reply signs an answer for what the person has seen, and sends it to the gate: where something else is asked by now, it is refused.
func (d desk) reply(w http.ResponseWriter, r *http.Request) {
	var g given
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&g); err != nil {
		refuse(w, http.StatusUnprocessableEntity, "the body is not an answer to an approval: "+err.Error())
		return
	}
	if err := g.Reply.Check(); err != nil {
		refuse(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	if d.approver() == "" {
		refuse(w, http.StatusForbidden, "this service has no key of an approver: superstep approve "+r.PathValue("thread")+" "+g.Question)
		return
	}
	claims := approval.Claims{Thread: r.PathValue("thread"), Question: g.Question, Approver: d.approver(), Digest: g.Digest, ParamsHash: g.ParamsHash}
	proof, err := d.cfg.Signer.Sign(claims)
	if err != nil {
		d.fail(w, err)
		return
	}
	value, err := json.Marshal(g.Reply)
	if err != nil {
		d.fail(w, err)
		return
	}
	reply, err := d.cfg.Threads.Resume(r.Context(), thread.ResumeRequest{Thread: claims.Thread, Question: g.Question, Value: value, By: claims.Approver, Token: proof, ID: g.ID})
	if err != nil {
		d.fail(w, err)
		return
	}
	answer(w, http.StatusOK, map[string]any{"repeated": reply.Repeated})
}

// stop ends what a thread does after an approval: no run of the protocol is under way then that could be cancelled.
func (d desk) stop(w http.ResponseWriter, r *http.Request) {
	_, err := d.cfg.Threads.Cancel(r.Context(), thread.CancelRequest{Thread: r.PathValue("thread"), Reason: "stopped in the chat", By: d.approver()})
	if err != nil {
		d.fail(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// statuses are those of errors that people can do something about.
var statuses = []struct {
	kind   error
	status int
}{
	{thread.ErrNotFound, http.StatusNotFound}, {thread.ErrBadInput, http.StatusUnprocessableEntity}, {thread.ErrAnswerRefused, http.StatusConflict},
	{thread.ErrNoWorker, http.StatusServiceUnavailable}, {thread.ErrNoServer, http.StatusServiceUnavailable}, {thread.ErrBusy, http.StatusServiceUnavailable},
}

func (d desk) fail(w http.ResponseWriter, err error) {
	for _, s := range statuses {
		if errors.Is(err, s.kind) {
			refuse(w, s.status, err.Error())
			return
		}
	}
	refuse(w, http.StatusInternalServerError, "the service could not do that")
}

func refuse(w http.ResponseWriter, status int, detail string) {
	answer(w, status, map[string]string{"detail": detail})
}

func answer(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"detail": "the answer cannot be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(slices.Concat(text, []byte("\n"))) // the client may have gone
}
