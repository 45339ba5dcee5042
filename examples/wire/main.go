// Command wire talks to Superstep with Temporal's client alone, as any program in any language can: it sends each message of
// docs/wire.md to a run or to a job, and prints what it sent and what came back.
//
//	go run ./examples/desk/cmd     serves what it talks to
//	go run ./examples/wire
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
)

// object is a JSON object.
type object = map[string]any

// patience bounds what the program waits for.
const patience = time.Minute

// program is one execution of the command. Its methods fail with the whole of it.
type program struct {
	ctx    context.Context
	client client.Client
	queue  string
	graph  string
	leader string
	suffix string // of ids
}

func main() {
	address := flag.String("address", "127.0.0.1:7233", "of the Temporal server")
	queue := flag.String("task-queue", "superstep", "that a worker of examples/desk serves")
	graph := flag.String("graph", "desk", "its graph")
	leader := flag.String("leader", "office", "its leader")
	flag.Parse()
	c, err := client.Dial(client.Options{HostPort: *address, Logger: silence{}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer c.Close()
	p := &program{ctx: context.Background(), client: c, queue: *queue, graph: *graph, leader: *leader, suffix: fmt.Sprintf("%x", time.Now().UnixNano())}
	defer func() {
		if failed := recover(); failed != nil {
			fmt.Fprintln(os.Stderr, failed)
			os.Exit(1)
		}
	}()
	p.asksTheDesk()
	p.answersAQuestion()
	p.takesTurns()
	p.keepsARunOpen()
	p.sendsEvents()
	p.asksForAnApproval()
	p.isRefused()
	p.leadsAJob()
	p.failsAJob()
}

// start starts a workflow of a type, and prints its input.
func (p *program) start(kind, id string, input any) client.WorkflowRun {
	run, err := p.client.ExecuteWorkflow(p.ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: p.queue,
		WorkflowTaskTimeout:                      2 * time.Second, // how long a lost worker keeps the run
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, kind, input)
	must(err)
	fmt.Printf("\nworkflow %s %s\n  sent   %s\n", kind, id, text(input))
	return run
}

// result waits for a run's end, prints it, and returns what a run left that ended well.
func (p *program) result(run client.WorkflowRun) (result object) {
	err := run.Get(p.ctx, &result)
	fmt.Printf("result of %s\n  got    %s\n", run.GetID(), outcome(result, err))
	return result
}

// update sends an update, and prints it and its outcome: a reply, or the type of the error with which it was refused. The
// update's id makes it idempotent: Superstep knows it also behind a continue-as-new, by the request's own id.
func (p *program) update(id, name string, request object) (reply object, err error) {
	updateID, _ := request["id"].(string)
	handle, err := p.client.UpdateWorkflow(p.ctx, client.UpdateWorkflowOptions{WorkflowID: id, UpdateID: updateID, UpdateName: name,
		Args: []any{request}, WaitForStage: client.WorkflowUpdateStageCompleted})
	if err == nil {
		err = handle.Get(p.ctx, &reply)
	}
	fmt.Printf("update %s\n  sent   %s\n  got    %s\n", name, text(request), outcome(reply, err))
	return reply, err
}

// signal sends a signal. A signal has no reply: what is not taken is among the refused of the run's state.
func (p *program) signal(id, name string, request object) {
	must(p.client.SignalWorkflow(p.ctx, id, "", name, request))
	fmt.Printf("signal %s\n  sent   %s\n", name, text(request))
}

// query asks a run, open or closed, and prints the reply.
func (p *program) query(id, name string, args ...any) (reply any) {
	value, err := p.client.QueryWorkflow(p.ctx, id, "", name, args...)
	if err == nil {
		err = value.Get(&reply)
	}
	fmt.Printf("query %s\n  sent   %s\n  got    %s\n", name, text(args), outcome(reply, err))
	must(err)
	return reply
}

// until asks a run again and again, quietly, until its reply to a query is as wanted.
func (p *program) until(id, query, what string, wanted func(object) bool) (reply object) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		value, err := p.client.QueryWorkflow(p.ctx, id, "", query)
		if err != nil {
			continue // it has no workflow task behind it yet
		}
		reply = nil
		must(value.Get(&reply))
		if wanted(reply) {
			return reply
		}
	}
	panic(fmt.Sprintf("%s: no %s after %v: %s", id, what, patience, text(reply)))
}

// question waits until a run asks something, and returns the question's id.
func (p *program) question(id string) string {
	state := p.until(id, "outline", "question", func(s object) bool { return list(s["questions"]) != nil })
	return list(state["questions"])[0].(object)["id"].(string)
}

func list(v any) []any {
	all, _ := v.([]any)
	return all
}

// text is a value as JSON, shortened.
func text(v any) string {
	out, err := json.Marshal(v)
	must(err)
	if len(out) > 600 {
		return string(out[:600]) + "…"
	}
	return string(out)
}

// outcome is a reply, or an error of one of the types that docs/wire.md names.
func outcome(reply any, err error) string {
	var refused *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	switch {
	case err == nil:
		return text(reply)
	case errors.As(err, &refused):
		var details any
		if refused.HasDetails() {
			must(refused.Details(&details))
		}
		return fmt.Sprintf("error %s (%s): %s; details %s", refused.Type(), meaning(refused.Type()), first(refused.Message()), text(details))
	case errors.As(err, &cancelled):
		var details any
		if cancelled.HasDetails() {
			must(cancelled.Details(&details))
		}
		return "cancelled; details " + text(details)
	}
	return "error " + err.Error()
}

// meaning says what an error type asks of a program.
func meaning(kind string) string {
	switch kind {
	case "superstep.BadInput", "superstep.BadAnswer", "superstep.BadUpdate":
		return "send something else"
	case "superstep.UnknownQuestion", "superstep.AlreadyAnswered", "superstep.NotFailed", "superstep.JobRefused":
		return "look where it stands"
	case "superstep.AnswerNotAllowed":
		return "somebody else may"
	case "superstep.RunBusy":
		return "send it again later"
	case "superstep.InputWanted":
		return "send it with its input"
	case "superstep.NodeFailed", "superstep.RunFailed", "superstep.JobFailed":
		return "it failed"
	}
	return "of the graph's own"
}

func first(message string) string {
	line, _, _ := strings.Cut(message, "\n")
	return line
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// silence is a logger that says nothing: this program prints what it does.
type silence struct{}

func (silence) Debug(string, ...any) {}
func (silence) Info(string, ...any)  {}
func (silence) Warn(string, ...any)  {}
func (silence) Error(string, ...any) {}

var _ log.Logger = silence{}
