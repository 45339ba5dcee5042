package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/approval/token"
)

const (
	envToken      = "SUPERSTEP_TOKEN"
	envSigningKey = token.EnvSigningKey
)

func (a *app) tokenCommand() *cobra.Command {
	var (
		who, key, op, on string
		life             time.Duration
	)
	cmd := a.build(command{
		use: "token THREAD [QUESTION]", short: "Make a token that lets somebody answer, or do something to a run", group: groupRuns,
		args: []string{"THREAD", "[QUESTION]"},
		about: `The token is good for this question, as it is asked now, for one answer by that person, and for a short time. Give it to
them and to nobody else. It is made with the private key in ` + envSigningKey + ` or --key; workers need the public one.

Where the workers' rules are about what is done to runs (control), --op makes one for that: pause, unpause, cancel, update,
fork, retry, drain, resume or event. --on is what it is about: the mode of a cancel (keep when it is left out), the
checkpoint of a fork, an event's name, the question to resume. One to unpause is for the pause of now, and for no later one.`,
		example: []string{"token r-7 q-41c9 --for ann --key ann.key", "token r-7 --for ann --ttl 2m --key ann.key -o json",
			"token r-7 --op unpause --for ann --key ann.key"},
		run: func(cmd *cobra.Command, args []string) error {
			if op != "" || on != "" {
				return a.makeControlToken(cmd.Context(), args, approval.Control{Op: approval.Op(op), On: on}, who, key, life)
			}
			return a.makeToken(cmd.Context(), append(args, "")[:2], who, key, life)
		},
	})
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&who, "for", "", "`NAME` of who is to answer (default: whose key it is)")
	flags.StringVar(&op, "op", "", "what it is for: `OP`, in place of an approval")
	flags.StringVar(&on, "on", "", "what the --op is about: `NAME`, see above")
	flags.DurationVar(&life, "ttl", 5*time.Minute, "`TIME` for which it is good, up to 1h")
	flags.StringVar(&key, "key", "", "private key `FILE` ("+envSigningKey+")")
	return cmd
}

// tokenView is a token for programs.
type tokenView struct {
	Token    string    `json:"token"`
	Thread   string    `json:"thread"`
	Question string    `json:"question"`
	For      string    `json:"for"`
	Expires  time.Time `json:"expires"`
}

func (a *app) makeToken(ctx context.Context, args []string, who, key string, life time.Duration) error {
	if life < time.Second || life > approval.MaxTokenLife {
		return usagef("--ttl %v is not between 1s and %v", life, approval.MaxTokenLife)
	}
	if err := checkThread(args[0]); err != nil {
		return err
	}
	if err := checkQuestion(args[1]); err != nil {
		return err
	}
	signer, err := a.signer(key)
	if err != nil {
		return err
	}
	if signer == nil {
		return usagef("there is no key to sign with: set %s or give --key", envSigningKey)
	}
	if who = first(who, signer.Key().Owner.Person); who == "" {
		return usagef("--for is missing: the name of who is to answer")
	}
	return a.withService(ctx, func(svc service) error {
		v, err := a.openApproval(ctx, svc, args[0], args[1])
		if err != nil {
			return err
		}
		expires := a.now().Add(life).Truncate(time.Second)
		signed, err := sign(signer, v, who, expires)
		if err != nil {
			return err
		}
		if a.json() {
			return a.writeJSON(tokenView{Token: signed, Thread: v.Thread, Question: v.ID, For: who, Expires: expires})
		}
		a.printf("%s\n", signed)
		return nil
	})
}

// makeControlToken makes a token with which somebody does something to a run.
func (a *app) makeControlToken(ctx context.Context, args []string, c approval.Control, who, key string, life time.Duration) error {
	switch {
	case !slices.Contains(approval.Ops, c.Op):
		return usagef("--op %s is unknown; it is %s", quoted(string(c.Op)), opNames())
	case len(args) > 1:
		return usagef("--op is for what is done to a run: name a question with --op resume --on QUESTION")
	case life < time.Second || life > approval.MaxTokenLife:
		return usagef("--ttl %v is not between 1s and %v", life, approval.MaxTokenLife)
	}
	if err := checkThread(args[0]); err != nil {
		return err
	}
	signer, err := a.signer(key)
	if err != nil {
		return err
	}
	if signer == nil {
		return usagef("there is no key to sign with: set %s or give --key", envSigningKey)
	}
	if who = first(who, signer.Key().Owner.Person); who == "" {
		return usagef("--for is missing: the name of who is to do it")
	}
	if c.Op == approval.OpCancel && c.On == "" {
		c.On = string(superstep.CancelKeep)
	}
	if c.Op == approval.OpUnpause {
		if err := a.withService(ctx, func(svc service) (err error) {
			c.On, err = pausedOn(ctx, svc, args[0])
			return err
		}); err != nil {
			return err
		}
	}
	claims := c.Claims(args[0], who)
	claims.ExpiresAt = a.now().Add(life).Truncate(time.Second)
	signed, err := signer.Sign(claims)
	if err != nil {
		return &usageError{message: err.Error(), err: err}
	}
	if a.json() {
		return a.writeJSON(controlTokenView{Token: signed, Thread: args[0], Op: c.Op, On: c.On, For: who, Expires: claims.ExpiresAt})
	}
	a.printf("%s\n", signed)
	return nil
}

// controlTokenView is a token for control, for programs.
type controlTokenView struct {
	Token   string      `json:"token"`
	Thread  string      `json:"thread"`
	Op      approval.Op `json:"op"`
	On      string      `json:"on,omitempty"`
	For     string      `json:"for"`
	Expires time.Time   `json:"expires"`
}

func opNames() string {
	names := make([]string, len(approval.Ops))
	for i, op := range approval.Ops {
		names[i] = string(op)
	}
	return strings.Join(names, ", ")
}

// pausedOn is which pause of a thread is to end, "" when it is not paused.
func pausedOn(ctx context.Context, svc service, thread string) (string, error) {
	view, err := svc.Show(ctx, thread)
	if err != nil || view.Paused == nil {
		return "", err
	}
	return approval.PausedAt(view.Paused.At), nil
}

// sign makes a token for the question as it is asked now; a zero time leaves its life to the signer.
func sign(signer *token.Signer, v superstep.QuestionView, who string, expires time.Time) (string, error) {
	signed, err := signer.Sign(approval.Claims{Thread: v.Thread, Question: v.ID, Approver: who, Digest: v.Approval.Digest,
		ParamsHash: v.Approval.ParamsHash, ExpiresAt: expires})
	if err != nil {
		return "", &usageError{message: err.Error(), err: err}
	}
	return signed, nil
}

// proof is who answers, and the token that proves it: the one that was given, or one that is made here. Without one the
// worker refuses the answer. A given token says who answers, so that nobody has to.
func (a *app) proof(f replyFlags, v superstep.QuestionView) (who, signed string, err error) {
	if given := a.given(f); given != "" {
		a.secrets = append(a.secrets, given)
		return f.by, given, nil
	}
	signer, err := a.signer(f.key)
	if err != nil {
		return "", "", err
	}
	if signer == nil {
		return first(f.by, a.userName()), "", nil
	}
	who = first(f.by, signer.Key().Owner.Person, a.userName())
	signed, err = sign(signer, v, who, time.Time{})
	return who, signed, err
}

// given is the token that was given, "" for none.
func (a *app) given(f replyFlags) string {
	fromEnv, _ := a.env.LookupEnv(envToken)
	return first(f.token, fromEnv)
}

// signer reads the private key, from the file that was named or from the environment; nil when there is none.
func (a *app) signer(file string) (s *token.Signer, err error) {
	text, _ := a.env.LookupEnv(envSigningKey)
	if file == "" && strings.Contains(text, "-----BEGIN ") {
		s, err = token.ParseSigner([]byte(text))
	} else if file = first(file, text); file != "" {
		s, err = token.LoadSigner(file)
	}
	if err != nil {
		return nil, &usageError{message: err.Error(), err: err}
	}
	if s != nil {
		s.Now = a.now
	}
	return s, nil
}
