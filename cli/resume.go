package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev/approval"
	"superstep.dev/cli/screen"
	"superstep.dev/thread"
)

// answers are the commands about questions: what is asked, and the answers to it.
type answers struct{ *app }

// resumeFlags are the flags of resume, and what they answer.
type resumeFlags struct {
	thread.ResumeRequest
	proof          proofFlags
	value, answers string
	// flag is what value is called on the command line, and given whether a flag is there.
	flag  string
	given func(flag string) bool
	// follow shows what the run does from then on.
	follow bool
}

func (a answers) resumeCommand() *cobra.Command {
	f := resumeFlags{flag: "value"}
	return a.build(command{
		name: "resume",
		flags: func(flags *pflag.FlagSet) {
			f.given = flags.Changed
			flags.StringVar(&f.value, "value", "", "answer as `JSON`, @FILE, or - for standard input; at most 256 KiB")
			flags.StringVar(&f.answers, "answers", "", "answers by question as a `JSON` object, @FILE, or -; at most 256 KiB together")
			flags.StringVar(&f.ID, "id", "", "`ID` of this answer, to repeat it safely (default: a new one)")
			f.proof.register(flags, false)
			flags.BoolVar(&f.Signal, "signal", false, "store the answer without waiting for a worker to check it")
			a.registerFollow(flags, &f.follow)
		},
		run: func(ctx context.Context, args []string) error {
			f.Thread, f.Question = args[0], args[1]
			return a.resume(ctx, &f)
		},
	})
}

// resume answers a question.
func (a answers) resume(ctx context.Context, f *resumeFlags) error {
	if err := a.readAnswer(ctx, f); err != nil {
		return err
	}
	return a.withService(ctx, func(svc service) error {
		var view thread.View
		// With a signal there may be no worker to ask what is open; the keys of several answers say which are meant.
		if !f.Signal && len(f.Answers) == 0 || f.follow {
			var err error
			if view, err = svc.Show(ctx, f.Thread); err != nil {
				return err
			}
		}
		reply, err := a.answer(ctx, svc, f, view)
		if err != nil {
			return err
		}
		if f.follow {
			a.ShowLine(reply, func() { a.showTaken(reply, f) })
			return a.follow(ctx, svc, view, false)
		}
		a.Show(reply, func() {
			what := a.showTaken(reply, f)
			rest := slices.DeleteFunc(slices.Clone(answerable(view)), func(q thread.Question) bool { return q.ID == what })
			a.next(nextOf(f.Thread, standing(reply.Paused), rest)...)
		})
		return nil
	})
}

// answer sends the answer to the question that is meant; view is what is open, as far as that is known.
func (a answers) answer(ctx context.Context, svc service, f *resumeFlags, view thread.View) (reply thread.ResumeReply, err error) {
	if view.Thread != "" && len(f.Answers) == 0 {
		if err := a.chooseQuestion(view, f); err != nil {
			return reply, err
		}
	}
	if f.By, f.Token, err = a.prove(f.proof, f.Thread, approval.OpResume, f.Question); err != nil {
		return reply, err
	}
	return svc.Resume(ctx, f.ResumeRequest)
}

// readAnswer completes the request as far as the flags go.
func (a answers) readAnswer(ctx context.Context, f *resumeFlags) (err error) {
	valued := f.given(f.flag)
	switch err := f.proof.check(f.ID); {
	case err != nil:
		return err
	case f.answers != "" && (f.Question != "" || valued):
		return usagef("--answers names its questions itself: leave QUESTION and --value out")
	case f.answers != "":
		return a.readAnswers(ctx, f)
	case f.Signal && f.follow:
		return usagef("--signal waits for nothing: leave --follow out")
	case f.Signal && f.Question == "":
		return usagef("--signal needs the QUESTION: there may be no worker to ask which one is open")
	case f.Signal && !valued:
		return a.needValue(f, thread.Question{ID: f.Question})
	case valued:
		f.Value, err = a.jsonText(ctx, "--"+f.flag, maxAnswer, f.value)
		return err
	}
	return nil
}

// readAnswers reads the answers to several questions.
func (a answers) readAnswers(ctx context.Context, f *resumeFlags) error {
	text, err := a.jsonText(ctx, "--answers", maxAnswer, f.answers)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &f.Answers); err != nil || len(f.Answers) == 0 {
		return usagef(`--answers is no JSON object of answers by question: '{"q-41c9":true}'`)
	}
	for question := range f.Answers {
		if err := checkQuestion(question); err != nil {
			return err
		}
	}
	return nil
}

// chooseQuestion settles which question is meant, as far as the open ones are known; the rest is left to the server,
// which also knows what became of the others.
func (a answers) chooseQuestion(view thread.View, f *resumeFlags) error {
	meant := matching(answerable(view), f.Question)
	switch {
	case len(meant) > 1 && f.Question == "":
		return usagef("thread %s asks %d questions; name one of %s", f.Thread, len(meant), questionIDs(meant))
	case len(meant) > 1:
		return usagef("%s begins %d questions: %s", f.Question, len(meant), questionIDs(meant))
	case len(meant) == 1:
		f.Question = meant[0].ID
		return a.needValue(f, meant[0])
	case view.Status == thread.StatusStopped && f.given(f.flag):
		return usagef("thread %s stopped at a breakpoint, which takes no value: %s", f.Thread, a.commandLine("resume", f.Thread))
	case f.Question != "":
		return a.needValue(f, thread.Question{ID: f.Question})
	}
	return nil
}

// answerable returns the questions of a thread that can be answered now.
func answerable(view thread.View) []thread.Question {
	if view.Status == thread.StatusRunning || view.Status == thread.StatusWaiting || view.Status == thread.StatusPaused {
		return view.Questions
	}
	return nil
}

// matching returns the questions that an id or the start of one can mean; a whole id means that question only.
func matching(open []thread.Question, id string) []thread.Question {
	var found []thread.Question
	for _, q := range open {
		if q.ID == id {
			return []thread.Question{q}
		}
		if strings.HasPrefix(q.ID, id) {
			found = append(found, q)
		}
	}
	return found
}

// needValue refuses a question without an answer, and shows the answer's form.
func (a answers) needValue(f *resumeFlags, q thread.Question) error {
	if f.given(f.flag) {
		return nil
	}
	line := answerLine(f.Thread, q)
	if f.Signal {
		line = append(line, "--signal")
	}
	return usagef("--value is missing: %s", a.commandLine(line...))
}

// showTaken says what became of an answer, and returns what it answered.
func (a answers) showTaken(reply thread.ResumeReply, f *resumeFlags) (what string) {
	what = screen.Clean(cmp.Or(reply.Question, f.Question, screen.List(reply.Questions)))
	switch {
	case reply.Repeated:
		a.Printf("repeated  %s  it was taken before, under the same id\n", cmp.Or(what, screen.Clean(f.Thread)))
	case f.Signal:
		a.Printf("sent      %s\n", what)
	case what == "":
		a.Printf("resumed   %s\n", screen.Clean(f.Thread))
	default:
		a.Printf("accepted  %s%s\n", what, continues(reply.Node, reply.Paused))
	}
	return what
}

// continues says which node goes on, and whether a pause is to end first.
func continues(node string, paused bool) string {
	if node == "" {
		return ""
	}
	return "  " + screen.Clean(node) + " continues" + whenUnpaused(paused)
}

// whenUnpaused says when what was taken has an effect: of a paused run, not at once.
func whenUnpaused(paused bool) string {
	if paused {
		return " once the run is unpaused"
	}
	return ""
}

// standing is the status of a run that has taken something.
func standing(paused bool) thread.Status {
	if paused {
		return thread.StatusPaused
	}
	return thread.StatusRunning
}

// questionIDs lists questions for a message: "q-41c9 (approval), q-4777 (review)".
func questionIDs(questions []thread.Question) string {
	parts := make([]string, len(questions))
	for i, q := range questions {
		parts[i] = q.ID + " (" + q.Node + ")"
	}
	return screen.List(parts)
}
