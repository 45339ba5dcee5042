package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"superstep.dev"
)

// resumeFlags are the flags of resume.
type resumeFlags struct {
	value, by string
	valued    bool
	signal    bool
}

func (a *app) resumeCommand() *cobra.Command {
	var f resumeFlags
	cmd := a.build(command{
		use: "resume THREAD [QUESTION]", short: "Answer a question of a run", group: groupRuns,
		args: []string{"THREAD", "[QUESTION]"},
		about: `QUESTION is the question's id or the start of it, and can be left out while one question is open. A run that
stopped at a breakpoint goes on without --value. The run's worker checks the answer before it takes it. --signal
stores the answer although no worker runs, but cannot tell whether it will be taken.`,
		example: []string{
			`resume r-7 q-41c9 --value true`,
			`resume r-7 --value '{"approved":false,"reason":"wrong order"}' --by ann`,
			`resume r-7 q-41c9 --value @answer.json`,
		},
		run: func(cmd *cobra.Command, args []string) error {
			f.valued = cmd.Flags().Changed("value")
			return a.resume(cmd.Context(), append(args, "")[:2], f)
		},
	})
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.value, "value", "", "answer as `JSON`, @FILE, or - for standard input; at most 256 KiB")
	flags.StringVar(&f.by, "by", "", "`NAME` of who answers (default: your user name)")
	flags.BoolVar(&f.signal, "signal", false, "store the answer without waiting for a worker to check it")
	return cmd
}

// resume answers a question. args are the thread and the question.
func (a *app) resume(ctx context.Context, args []string, f resumeFlags) error {
	req, err := a.resumeRequest(ctx, args, f)
	if err != nil {
		return err
	}
	return a.withService(ctx, func(svc service) error {
		open, err := a.chooseQuestion(ctx, svc, &req, f)
		if err != nil {
			return err
		}
		reply, err := svc.Resume(ctx, req)
		if err != nil {
			return err
		}
		return a.showReply(reply, req, open)
	})
}

func (a *app) resumeRequest(ctx context.Context, args []string, f resumeFlags) (superstep.ResumeRequest, error) {
	req := superstep.ResumeRequest{
		Thread: args[0], Question: args[1], By: first(f.by, a.userName()), Signal: f.signal,
	}
	if err := checkThread(req.Thread); err != nil {
		return req, err
	}
	if len(req.Question) > maxThreadID || strings.ContainsFunc(req.Question, notPrintable) {
		return req, usagef("%s cannot be a question's id", quoted(req.Question))
	}
	if !f.valued {
		return req, nil
	}
	value, err := jsonFlag{name: "--value", max: maxAnswer}.read(ctx, f.value, a.stdin)
	req.Value = value
	return req, err
}

// chooseQuestion settles which question is meant and returns the open ones. A signal is sent when there may be no
// worker to ask, so it goes as it is. What is not open is left to the server, which knows what became of it.
func (a *app) chooseQuestion(ctx context.Context, svc service, req *superstep.ResumeRequest,
	f resumeFlags) ([]superstep.Question, error) {
	if req.Signal {
		return nil, a.needValue(f, req.Thread, superstep.Question{ID: first(req.Question, "QUESTION")})
	}
	view, err := svc.Show(ctx, req.Thread)
	if err != nil {
		return nil, err
	}
	open := a.toDo(view)
	meant := matching(open, req.Question)
	switch {
	case len(meant) > 1 && req.Question == "":
		return nil, usagef("thread %s asks %d questions; name one of %s", req.Thread, len(meant), questionIDs(meant))
	case len(meant) > 1:
		return nil, usagef("%s begins %d questions: %s", req.Question, len(meant), questionIDs(meant))
	case len(meant) == 1:
		req.Question = meant[0].ID
		return open, a.needValue(f, req.Thread, meant[0])
	case view.Status == superstep.StatusStopped && req.Question == "":
		return open, nil
	case req.Question == "" && view.Status != superstep.StatusWaiting:
		return nil, notWaiting(view)
	default:
		return open, a.needValue(f, req.Thread, superstep.Question{ID: first(req.Question, "QUESTION")})
	}
}

// matching returns the questions that an id or the start of one can mean; a whole id means that question only.
func matching(open []superstep.Question, id string) []superstep.Question {
	if i := slices.IndexFunc(open, func(q superstep.Question) bool { return q.ID == id }); i >= 0 {
		return open[i : i+1]
	}
	var found []superstep.Question
	for _, q := range open {
		if strings.HasPrefix(q.ID, id) {
			found = append(found, q)
		}
	}
	return found
}

// needValue refuses a question without an answer, and shows the answer's form.
func (a *app) needValue(f resumeFlags, thread string, q superstep.Question) error {
	if f.valued {
		return nil
	}
	line := []string{"resume", thread, q.ID, "--value", sampleAnswer(q.Schema)}
	if f.signal {
		line = append(line, "--signal")
	}
	return usagef("--value is missing: %s", a.commandLine(line...))
}

// notWaiting refuses an answer to a thread that asks nothing.
func notWaiting(view superstep.ThreadView) error {
	return &superstep.Error{
		Kind: superstep.ErrAnswerRefused, Thread: view.Thread, Graph: view.Graph,
		Message: fmt.Sprintf("thread %s asks nothing: its run is %s", view.Thread, view.Status),
	}
}

func (a *app) showReply(reply superstep.ResumeReply, req superstep.ResumeRequest, open []superstep.Question) error {
	if a.json() {
		return a.writeJSON(reply)
	}
	what := clean(first(reply.Question, req.Question))
	switch {
	case req.Signal:
		a.printf("sent      %s\n", what)
	case !reply.Accepted && what != "":
		a.printf("accepted  %s before, with the same request\n", what)
	case what == "":
		a.printf("resumed   %s\n", clean(req.Thread))
	default:
		a.printf("accepted  %s%s\n", what, continues(reply.Node))
	}
	rest := slices.DeleteFunc(slices.Clone(open), func(q superstep.Question) bool { return q.ID == what })
	a.next(nextOf(req.Thread, superstep.StatusRunning, rest))
	return nil
}

// continues says which node goes on.
func continues(node string) string {
	if node == "" {
		return ""
	}
	return "  " + clean(node) + " continues"
}
