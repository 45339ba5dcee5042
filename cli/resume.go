package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"superstep.dev"
	"superstep.dev/approval"
)

// resumeFlags are the flags of resume.
type resumeFlags struct {
	askFlags
	value, answers, id string
	valued             bool
	signal             bool
}

func (a *app) resumeCommand() *cobra.Command {
	var f resumeFlags
	cmd := a.build(command{
		use: "resume THREAD [QUESTION]", short: "Answer a question of a run", group: groupRuns,
		args: []string{"THREAD", "[QUESTION]"},
		about: `QUESTION is the question's id or the start of it, and can be left out while one question is open. A run that
stopped at a breakpoint goes on without --value. The run's worker checks the answer before it takes it. --signal
stores the answer although no worker runs, but cannot tell whether it will be taken. --answers answers several questions
at once, all of them or none. Whoever repeats an answer without knowing what became of it names it with --id: it is taken
once.`,
		example: []string{
			`resume r-7 q-41c9 --value true`,
			`resume r-7 --value '{"approved":false,"reason":"wrong order"}' --by ann`,
			`resume r-7 q-41c9 --value @answer.json`,
			`resume r-7 --answers '{"q-41c9":true,"q-4777":"checked"}'`,
		},
		run: func(cmd *cobra.Command, args []string) error {
			f.valued = cmd.Flags().Changed("value")
			return a.resume(cmd.Context(), append(args, "")[:2], f)
		},
	})
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.value, "value", "", "answer as `JSON`, @FILE, or - for standard input; at most 256 KiB")
	flags.StringVar(&f.answers, "answers", "", "answers by question as a `JSON` object, @FILE, or -; at most 256 KiB together")
	flags.StringVar(&f.id, "id", "", "`ID` of this answer, to repeat it safely (default: a new one)")
	f.register(flags, false)
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
		// With a signal there may be no worker to ask what is open; the keys of several answers say which are meant.
		if f.signal || len(req.Answers) > 0 {
			if err := a.proveAnswer(f, &req); err != nil {
				return err
			}
			return a.answer(ctx, svc, req, nil)
		}
		view, err := svc.Show(ctx, req.Thread)
		if err != nil {
			return err
		}
		if err := a.chooseQuestion(view, &req, f); err != nil {
			return err
		}
		if err := a.proveAnswer(f, &req); err != nil {
			return err
		}
		return a.answer(ctx, svc, req, answerable(view))
	})
}

// proveAnswer says who answers, and proves it when there is a key.
func (a *app) proveAnswer(f resumeFlags, req *superstep.ResumeRequest) (err error) {
	req.By, req.Token, err = a.asker(f.askFlags, req.Thread, approval.Control{Op: approval.OpResume, On: req.Question})
	return err
}

// answer sends the answer; open are the questions that were open before it.
func (a *app) answer(ctx context.Context, svc service, req superstep.ResumeRequest, open []superstep.Question) error {
	reply, err := svc.Resume(ctx, req)
	if err != nil {
		return err
	}
	return a.showReply(reply, req, open)
}

func (a *app) resumeRequest(ctx context.Context, args []string, f resumeFlags) (superstep.ResumeRequest, error) {
	req := superstep.ResumeRequest{
		Thread: args[0], Question: args[1], Signal: f.signal, ID: f.id,
	}
	if err := f.askFlags.check(); err != nil {
		return req, err
	}
	if err := checkThread(req.Thread); err != nil {
		return req, err
	}
	if err := checkQuestion(req.Question); err != nil {
		return req, err
	}
	if len(req.ID) > maxThreadID {
		return req, usagef("--id has at most %d bytes", maxThreadID)
	}
	if f.answers != "" {
		return a.severalAnswers(ctx, req, f)
	}
	if f.signal && req.Question == "" {
		return req, usagef("--signal needs the QUESTION: there may be no worker to ask which one is open")
	}
	if !f.valued {
		if f.signal {
			return req, a.needValue(f, req, superstep.Question{ID: req.Question})
		}
		return req, nil
	}
	value, err := jsonFlag{name: "--value", max: maxAnswer}.read(ctx, f.value, a.stdin)
	req.Value = value
	return req, err
}

// severalAnswers completes a request that answers several questions.
func (a *app) severalAnswers(ctx context.Context, req superstep.ResumeRequest, f resumeFlags) (superstep.ResumeRequest, error) {
	if req.Question != "" || f.valued {
		return req, usagef("--answers names its questions itself: leave QUESTION and --value out")
	}
	text, err := jsonFlag{name: "--answers", max: maxAnswer}.read(ctx, f.answers, a.stdin)
	if err != nil {
		return req, err
	}
	if err := json.Unmarshal(text, &req.Answers); err != nil || len(req.Answers) == 0 {
		return req, usagef(`--answers is no JSON object of answers by question: '{"q-41c9":true}'`)
	}
	for question := range req.Answers {
		if err := checkQuestion(question); err != nil {
			return req, err
		}
	}
	return req, nil
}

// chooseQuestion settles which question is meant, as far as the open ones are known; the rest is left to the server,
// which also knows what became of the others.
func (a *app) chooseQuestion(view superstep.ThreadView, req *superstep.ResumeRequest, f resumeFlags) error {
	open := answerable(view)
	meant := matching(open, req.Question)
	switch {
	case len(meant) > 1 && req.Question == "":
		return usagef("thread %s asks %d questions; name one of %s", req.Thread, len(meant), questionIDs(meant))
	case len(meant) > 1:
		return usagef("%s begins %d questions: %s", req.Question, len(meant), questionIDs(meant))
	case len(meant) == 1:
		req.Question = meant[0].ID
		return a.needValue(f, *req, meant[0])
	case view.Status == superstep.StatusStopped && f.valued:
		return usagef("thread %s stopped at a breakpoint, which takes no value: %s", req.Thread, a.commandLine("resume", req.Thread))
	case req.Question != "":
		return a.needValue(f, *req, superstep.Question{ID: req.Question})
	default:
		return nil
	}
}

// answerable returns the questions of a thread that can be answered now.
func answerable(view superstep.ThreadView) []superstep.Question {
	if view.Status == superstep.StatusRunning || view.Status == superstep.StatusWaiting || view.Status == superstep.StatusPaused {
		return view.Questions
	}
	return nil
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
func (a *app) needValue(f resumeFlags, req superstep.ResumeRequest, q superstep.Question) error {
	if f.valued {
		return nil
	}
	line := []string{"resume", req.Thread, q.ID, "--value", sampleAnswer(q.Schema)}
	if f.signal {
		line = append(line, "--signal")
	}
	return usagef("--value is missing: %s", a.commandLine(line...))
}

func (a *app) showReply(reply superstep.ResumeReply, req superstep.ResumeRequest, open []superstep.Question) error {
	if a.json() {
		return a.writeJSON(reply)
	}
	what := clean(first(reply.Question, req.Question, list(reply.Questions)))
	switch {
	case reply.Repeated:
		a.printf("repeated  %s  it was taken before, under the same id\n", first(what, clean(req.Thread)))
	case req.Signal:
		a.printf("sent      %s\n", what)
	case what == "":
		a.printf("resumed   %s\n", clean(req.Thread))
	default:
		a.printf("accepted  %s%s\n", what, continues(reply.Node))
	}
	rest := slices.DeleteFunc(slices.Clone(open), func(q superstep.Question) bool { return q.ID == what })
	a.next(nextOf(req.Thread, superstep.StatusRunning, rest))
	return nil
}

// showRefused shows what came by signal and was not taken: whoever sent it had no reply.
func (a *app) showRefused(refused []superstep.RefusedView) error {
	if len(refused) == 0 {
		return nil
	}
	a.printf("\n")
	t := newTable("NOT TAKEN", "BY", "SENT", "WHY")
	for _, r := range refused {
		t.row(first(r.Question, r.Event, "request"), r.By, a.moment(r.At)+", "+a.ago(r.At), r.Reason)
	}
	return t.writeTo(a.stdout, "")
}

// continues says which node goes on.
func continues(node string) string {
	if node == "" {
		return ""
	}
	return "  " + clean(node) + " continues"
}
