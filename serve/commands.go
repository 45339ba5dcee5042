package serve

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"superstep.dev/serve/record"
	"superstep.dev/thread"
)

// commands are what clients of the second version send, and the events that they get.
type commands struct{ *Server }

func (s commands) routes() []route {
	return []route{
		{"POST", "/threads/{thread_id}/commands", "Begins a run, or answers questions, as the second version of the protocol does", s.take},
		{"POST", "/threads/{thread_id}/stream/events", "Streams the events of the runs that commands began", s.events},
	}
}

// The errors of commands that clients tell apart.
const (
	commandUnknown  = "unknown_command"
	commandArgument = "invalid_argument"
	commandNoAnswer = "no_such_interrupt"
	commandNoRun    = "no_such_run"
	commandFailed   = "unknown_error" // it was taken, and what it asks for cannot be had
)

// commandAnswer answers a command; one that is refused is answered too, and the status of the response is 200.
type commandAnswer struct {
	Type    string `json:"type"`
	ID      *int64 `json:"id"`
	Result  any    `json:"result,omitempty"`
	Error   string `json:"error,omitempty"`
	Message string `json:"message,omitempty"`
	Meta    *meant `json:"meta,omitempty"`
}

// meant places a command among the thread's events: those that it brings about have a greater seq.
type meant struct {
	Through int64 `json:"applied_through_seq"`
}

// commandFault is a command that is refused, by its code.
type commandFault struct {
	code string
	error
}

// commandBody is a command: its params are those of its method.
type commandBody struct {
	ID     *int64          `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// take takes in a command. A thread that is not there is made by a run, as these clients do not make threads.
func (s commands) take(w http.ResponseWriter, r *http.Request) error {
	if _, err := threadIn(r); err != nil {
		return err
	}
	var c commandBody
	err := read(w, r, &c)
	if err != nil {
		c.ID = nil // of what does not decode the decoder leaves what is not there
	}
	if err == nil && (c.ID == nil || c.Method == "") {
		err = refuse(http.StatusBadRequest, "a command has an id, which is a number, and a method")
	}
	if err != nil {
		answer(w, http.StatusBadRequest, commandAnswer{Type: "error", ID: c.ID, Error: commandArgument, Message: faultOf(err).detail})
		return nil
	}
	var began *asking
	var result any = object{}
	switch c.Method {
	case "run.start":
		if began, err = s.start(r, c.Params); err == nil {
			result = map[string]string{"run_id": began.run.ID}
		}
	case "input.respond":
		began, err = s.respond(r, c.Params)
	case "subscription.subscribe":
		s.subscribed(w, r, c)
		return nil
	case "agent.getTree":
		err = &commandFault{commandNoRun, refuse(http.StatusNotFound, "there is no tree of a run: read the thread's state with its subgraphs")}
	default:
		err = &commandFault{commandUnknown, refuse(http.StatusBadRequest, "there is no command %q", c.Method)}
	}
	if err == nil {
		answer(w, http.StatusOK, commandAnswer{Type: "success", ID: c.ID, Result: result, Meta: &meant{appliedThrough(began.thread)}})
		return nil
	}
	code := commandArgument
	var known *commandFault
	if errors.As(err, &known) {
		code, err = known.code, known.error
	}
	said := faultOf(err)
	if said.status >= http.StatusInternalServerError {
		return err // not the command's fault: the client may try again
	}
	answer(w, http.StatusOK, commandAnswer{Type: "error", ID: c.ID, Error: code, Message: said.detail})
	return nil
}

// subscribed answers what clients send who hold a socket. Here events come with a request for them alone: see events.
func (s commands) subscribed(w http.ResponseWriter, r *http.Request, c commandBody) {
	var wanted subscription
	err := paramsOf(c.Params, &wanted)
	if err == nil {
		err = wanted.check()
	}
	var t record.Thread
	if err == nil {
		t, err = s.record(r)
	}
	if err != nil {
		answer(w, http.StatusOK, commandAnswer{Type: "error", ID: c.ID, Error: commandArgument, Message: faultOf(err).detail})
		return
	}
	answer(w, http.StatusOK, commandAnswer{Type: "success", ID: c.ID, Meta: &meant{appliedThrough(t)},
		Result: map[string]any{"subscription_id": uuid.NewString(), "replayed_events": 0}})
}

// start asks for a run. On a busy thread it waits its turn unless the command says otherwise.
func (s commands) start(r *http.Request, params json.RawMessage) (*asking, error) {
	var body runRequest
	if err := paramsOf(params, &body); err != nil {
		return nil, err
	}
	if body.AssistantID == "" {
		return nil, refuse(http.StatusBadRequest, "run.start needs an assistant_id")
	}
	body.Command, body.IfNotExists, body.ofCommand = nil, "create", true
	began, err := s.ask(r, body, "")
	if err != nil {
		return nil, &commandFault{commandFailed, err}
	}
	return began, nil
}

// response is the answer to a question.
type response struct {
	Interrupt string          `json:"interrupt_id"`
	Response  json.RawMessage `json:"response"`
}

// respond answers questions that the thread asks. All of them have to be open: else none is answered.
func (s commands) respond(r *http.Request, params json.RawMessage) (*asking, error) {
	var p struct {
		response
		Responses []response      `json:"responses"`
		Update    json.RawMessage `json:"update"`
		Goto      json.RawMessage `json:"goto"`
		Config    config          `json:"config"`
		Metadata  object          `json:"metadata"`
	}
	if err := paramsOf(params, &p); err != nil {
		return nil, err
	}
	if len(p.Responses) == 0 && p.Interrupt == "" {
		return nil, refuse(http.StatusBadRequest, "input.respond needs an interrupt_id and a response, or responses")
	}
	if len(p.Responses) == 0 {
		p.Responses = []response{p.response}
	}
	t, err := s.record(r)
	var view thread.StateView
	if err == nil {
		view, err = s.client.State(r.Context(), thread.StateRequest{Thread: t.Under})
	}
	if err != nil && faultOf(err).status != http.StatusNotFound {
		return nil, err
	}
	answers := object{}
	for _, one := range p.Responses {
		one.Interrupt = questionIn(one.Interrupt)
		if !slices.ContainsFunc(view.Questions, func(q thread.Question) bool { return q.ID == one.Interrupt }) {
			return nil, &commandFault{commandNoAnswer, refuse(http.StatusNotFound, "the thread does not ask %q: read its state", one.Interrupt)}
		}
		if _, twice := answers[one.Interrupt]; twice || len(one.Response) == 0 {
			return nil, refuse(http.StatusBadRequest, "question %q needs one response", one.Interrupt)
		}
		answers[one.Interrupt] = one.Response
	}
	return s.ask(r, runRequest{AssistantID: t.Assistant, MultitaskStrategy: record.Enqueue, ofCommand: true, Config: p.Config, Metadata: p.Metadata,
		Command: &command{Resume: raw(answers), Update: p.Update, Goto: p.Goto}}, "")
}

// paramsOf decodes the parameters of a command.
func paramsOf(params json.RawMessage, into any) error {
	if given(params) && json.Unmarshal(params, into) != nil {
		return refuse(http.StatusBadRequest, "the params do not fit the command")
	}
	return nil
}
