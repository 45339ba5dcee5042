package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev/approval"
	"superstep.dev/cli/screen"
	"superstep.dev/thread"
)

// replyFlags are the flags of approve, reject and edit, and what they reply.
type replyFlags struct {
	thread.ResumeRequest
	approval.Reply
	proof  proofFlags
	params string
	// follow shows what the run does from then on.
	follow bool
}

// replyCommand is the command that gives such a verdict, and is called as the verdict is.
func (a answers) replyCommand(verdict approval.Verdict) *cobra.Command {
	f := replyFlags{Reply: approval.Reply{Verdict: verdict}}
	return a.build(command{
		name: string(verdict),
		flags: func(flags *pflag.FlagSet) {
			if verdict == approval.VerdictEdit {
				flags.StringVar(&f.params, "params", "", "all parameters to go on with, as `JSON`, @FILE, or - for standard input")
			}
			flags.StringVar(&f.Reason, "reason", "", "`TEXT` for the record")
			flags.StringVar(&f.proof.by, "by", "", "`NAME` of who answers (default: who the token or the key is for, or else your user name)")
			flags.StringVar(&f.proof.token, "token", "", "`TOKEN` that proves it (SUPERSTEP_TOKEN)")
			flags.StringVar(&f.ID, "id", "", "`ID` of this answer, to repeat it safely (default: a new one)")
			flags.StringVar(&f.proof.key, "key", "", "private key `FILE` to make a token with ("+envSigningKey+")")
			a.registerFollow(flags, &f.follow)
		},
		run: func(ctx context.Context, args []string) error {
			f.Thread, f.Question = args[0], args[1]
			return a.reply(ctx, &f)
		},
	})
}

// reply answers an approval.
func (a answers) reply(ctx context.Context, f *replyFlags) error {
	if err := a.readReply(ctx, f); err != nil {
		return err
	}
	return a.withService(ctx, func(svc service) (err error) {
		var before thread.View
		if f.follow {
			if before, err = svc.Show(ctx, f.Thread); err != nil {
				return err
			}
		}
		reply, others, err := a.sendReply(ctx, svc, f)
		if err != nil {
			return err
		}
		if f.follow {
			a.ShowLine(reply, func() { a.showCounted(reply, f, nil) })
			return a.follow(ctx, svc, before, false)
		}
		a.Show(reply, func() { a.next(a.showCounted(reply, f, others)...) })
		return nil
	})
}

// readReply completes the reply as far as the flags go.
func (a answers) readReply(ctx context.Context, f *replyFlags) (err error) {
	if err := checkLength("--reason", f.Reason, approval.MaxReason); err != nil {
		return err
	}
	if f.Verdict == approval.VerdictEdit {
		if f.params == "" {
			return usagef("--params is missing: all parameters to go on with, as JSON or @FILE")
		}
		if f.Params, err = a.jsonText(ctx, "--params", approval.MaxParams, f.params); err != nil {
			return err
		}
	}
	if err := f.Check(); err != nil {
		return wrongUse(err)
	}
	f.Value, err = json.Marshal(f.Reply)
	return err
}

// sendReply sends the reply to the approval that is meant, and returns the other questions that are open. A question that is
// not open any more is sent a reply with an id all the same: it may be the very one that was taken.
func (a answers) sendReply(ctx context.Context, svc service, f *replyFlags) (thread.ResumeReply, []thread.Question, error) {
	v, why := a.openApproval(ctx, svc, f.Thread, f.Question)
	if why != nil {
		if f.ID == "" || !errors.Is(why, thread.ErrAnswerRefused) {
			return thread.ResumeReply{}, nil, why
		}
		f.By = cmp.Or(f.proof.by, a.userName())
		reply, err := svc.Resume(ctx, f.ResumeRequest)
		if err != nil || !reply.Repeated {
			return reply, nil, why
		}
		return reply, nil, nil
	}
	// Parameters copied from a screen that hides some of them: *** would be what is proposed.
	if f.params != "" && len(v.Approval.Secrets) > 0 && strings.Contains(string(f.Value), `"`+approval.Hidden+`"`) {
		return thread.ResumeReply{}, nil, usagef("--params holds %q where the screens hide a value (%s): give the value itself",
			approval.Hidden, screen.List(v.Approval.Secrets))
	}
	f.Thread, f.Question = v.Thread, v.ID
	var err error
	if f.By, f.Token, err = a.proof(f.proof, func(who string) approval.Claims { return answerClaims(v, who) }); err != nil {
		return thread.ResumeReply{}, nil, err
	}
	reply, err := a.sendOrStore(ctx, svc, f)
	return reply, v.Others, err
}

// sendOrStore sends a reply. Without a worker it is stored, for the first one to check: the id that both have lets it count once.
func (a answers) sendOrStore(ctx context.Context, svc service, f *replyFlags) (thread.ResumeReply, error) {
	f.ID = cmp.Or(f.ID, a.newThread("answer"))
	reply, err := svc.Resume(ctx, f.ResumeRequest)
	if !errors.Is(err, thread.ErrNoWorker) {
		return reply, err
	}
	f.Signal = true
	return svc.Resume(ctx, f.ResumeRequest)
}

// answerClaims are those of somebody who answers an approval as it is asked now. The signer says for how long.
func answerClaims(v thread.QuestionView, who string) approval.Claims {
	return approval.Claims{Thread: v.Thread, Question: v.ID, Approver: who, Digest: v.Approval.Digest, ParamsHash: v.Approval.ParamsHash}
}

// openApproval is the approval that is meant; an error says why it cannot be answered.
func (a answers) openApproval(ctx context.Context, svc service, threadID, id string) (thread.QuestionView, error) {
	v, err := svc.Question(ctx, threadID, id)
	switch {
	case err != nil:
		return v, err
	case v.Given != nil:
		return v, &thread.Error{Kind: thread.ErrAnswerRefused, Graph: v.Graph, Thread: v.Thread, Node: v.Node, Question: v.ID,
			Message: v.ID + ": already answered" + screen.By(v.Given.By) + " at " + a.Moment(v.Given.At),
			Do:      "See what became of it", Command: []string{"audit", v.Thread}}
	case v.Approval == nil:
		return v, usagef("%s asks for no approval; answer it: %s", v.ID, a.commandLine(answerLine(v.Thread, v.Question)...))
	}
	return v, nil
}

// showCounted says what became of the reply, and returns the command that comes next.
func (a answers) showCounted(reply thread.ResumeReply, f *replyFlags, others []thread.Question) (next []string) {
	who, what, node := screen.By(reply.By), screen.Clean(reply.Question), screen.Clean(cmp.Or(reply.Node, "the run"))
	next = nextOf(f.Thread, standing(reply.Paused), others)
	switch {
	case f.Signal:
		a.Printf("stored    %s; no worker is there to check it: one that comes does, while the token is valid, and show lists it if it does not count\n", what)
		return []string{"show", f.Thread}
	case reply.Repeated:
		a.Printf("repeated  %s  it was taken before, under the same id\n", what)
	case f.Verdict == approval.VerdictApprove && reply.Votes < reply.Need:
		a.Printf("counted   %s%s, %d of %d\n", what, who, reply.Votes, reply.Need)
		next = []string{"question", f.Thread, reply.Question}
	case f.Verdict == approval.VerdictApprove:
		a.Printf("accepted  %s%s; %s continues%s\n", what, who, node, whenUnpaused(reply.Paused))
	case f.Verdict == approval.VerdictReject:
		a.Printf("rejected  %s%s; %s continues without it%s\n", what, who, node, whenUnpaused(reply.Paused))
	default:
		a.Printf("proposed  %s%s; %s asks anew, with these parameters%s\n", what, who, node, whenUnpaused(reply.Paused))
		if next = []string{"question", f.Thread}; reply.Paused {
			next = []string{"unpause", f.Thread}
		}
	}
	return next
}
