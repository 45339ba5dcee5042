package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev/approval"
	"superstep.dev/approval/token"
	"superstep.dev/cli/screen"
	"superstep.dev/thread"
)

const (
	envToken      = "SUPERSTEP_TOKEN"
	envSigningKey = token.EnvSigningKey
	// controlLife is how long a token is good that a command makes for itself.
	controlLife = 2 * time.Minute
)

// proofFlags say who does something to a run, and prove it.
type proofFlags struct{ by, token, key, reason string }

// register adds the flags of who does something to a run; reasons says that there is a --reason among them.
func (f *proofFlags) register(flags *pflag.FlagSet, reasons bool) {
	if reasons {
		flags.StringVar(&f.reason, "reason", "", "`TEXT` for those who look later")
	}
	flags.StringVar(&f.by, "by", "", "`NAME` of who asks (default: whose key it is, or your user name)")
	flags.StringVar(&f.token, "token", "", "`TOKEN` that proves it, where the workers' rules want that ("+envToken+")")
	flags.StringVar(&f.key, "key", "", "private key `FILE` to make a token with ("+envSigningKey+")")
}

// check refuses what no run takes. id is that of the request, to repeat it safely.
func (f *proofFlags) check(id string) error {
	return cmp.Or(checkLength("--by", f.by, maxName), checkLength("--id", id, maxName), checkLength("--reason", f.reason, maxReason))
}

// proof returns who does something, and the token that proves it: the one that was given, else one that is made here with the
// signing key and the claims of that person. A given token names the person itself, so --by may be missing then. Without a key
// there is no token; workers whose rules want one refuse the request.
func (a *app) proof(f proofFlags, claims func(who string) approval.Claims) (who, signed string, err error) {
	fromEnv, _ := a.env.LookupEnv(envToken)
	if given := cmp.Or(f.token, fromEnv); given != "" {
		a.secrets.Keep(given)
		return f.by, given, nil
	}
	signer, err := a.signer(f.key)
	if err != nil {
		return "", "", err
	}
	if signer == nil {
		return cmp.Or(f.by, a.userName()), "", nil
	}
	who = cmp.Or(f.by, signer.Key().Owner.Person, a.userName())
	signed, err = sign(signer, claims(who))
	return who, signed, err
}

// prove is proof of somebody who does something to a run.
func (a *app) prove(f proofFlags, thread string, op approval.Op, on string) (who, signed string, err error) {
	return a.proof(f, func(who string) approval.Claims {
		claims := approval.Control{Op: op, On: on}.Claims(thread, who)
		claims.ExpiresAt = a.Now().Add(controlLife)
		return claims
	})
}

func sign(signer *token.Signer, claims approval.Claims) (string, error) {
	signed, err := signer.Sign(claims)
	if err != nil {
		return "", wrongUse(err)
	}
	return signed, nil
}

// signer reads the private key, from the file that was named or from the environment; nil when there is none.
func (a *app) signer(file string) (s *token.Signer, err error) {
	text, _ := a.env.LookupEnv(envSigningKey)
	if file == "" && strings.Contains(text, "-----BEGIN ") {
		s, err = token.ParseSigner([]byte(text))
	} else if file = cmp.Or(file, text); file != "" {
		s, err = token.LoadSigner(file)
	}
	if err != nil {
		return nil, wrongUse(err)
	}
	if s != nil {
		s.Now = a.Now
	}
	return s, nil
}

// signs reports whether a token would be made with a key.
func (a *app) signs(f proofFlags) bool {
	key, _ := a.env.LookupEnv(envSigningKey)
	return cmp.Or(f.key, key) != ""
}

// tokenFlags are the flags of token: for whom it is, and what for.
type tokenFlags struct {
	who, key string
	control  approval.Control
	life     time.Duration
}

func (a answers) tokenCommand() *cobra.Command {
	var f tokenFlags
	return a.build(command{
		name: "token",
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&f.who, "for", "", "`NAME` of who is to answer (default: whose key it is)")
			flags.StringVar((*string)(&f.control.Op), "op", "", "what it is for: `OP`, in place of an approval")
			flags.StringVar(&f.control.On, "on", "", "what the --op is about: `NAME`, see above")
			flags.DurationVar(&f.life, "ttl", 5*time.Minute, "`TIME` for which it is good, up to 1h")
			flags.StringVar(&f.key, "key", "", "private key `FILE` ("+envSigningKey+")")
		},
		run: func(ctx context.Context, args []string) error { return a.makeToken(ctx, args[0], args[1], f) },
	})
}

// tokenView is a token for programs: one for a question, or for what is done to a run.
type tokenView struct {
	Token    string      `json:"token"`
	Thread   string      `json:"thread"`
	Question string      `json:"question,omitempty"`
	Op       approval.Op `json:"op,omitempty"`
	On       string      `json:"on,omitempty"`
	For      string      `json:"for"`
	Expires  time.Time   `json:"expires"`
}

func (a answers) makeToken(ctx context.Context, thread, question string, f tokenFlags) error {
	signer, err := a.tokenSigner(question, &f)
	if err != nil {
		return err
	}
	claims := f.control.Claims(thread, f.who)
	if f.control == (approval.Control{}) || f.control.Op == approval.OpUnpause {
		// What the token is about is the server's to say: the question as it is asked now, or the pause of now.
		if err := a.withService(ctx, func(svc service) error {
			claims, err = a.claimsOf(ctx, svc, thread, question, &f)
			return err
		}); err != nil {
			return err
		}
	}
	claims.ExpiresAt = a.Now().Add(f.life).Truncate(time.Second)
	signed, err := sign(signer, claims)
	if err != nil {
		return err
	}
	view := tokenView{Token: signed, Thread: claims.Thread, Op: f.control.Op, On: f.control.On, For: f.who, Expires: claims.ExpiresAt}
	if f.control.Op == "" {
		view.Question = claims.Question
	}
	a.Show(view, func() { a.Printf("%s\n", signed) })
	return nil
}

// tokenSigner checks the flags, and returns who signs.
func (a answers) tokenSigner(question string, f *tokenFlags) (*token.Signer, error) {
	what := "answer"
	if f.control != (approval.Control{}) {
		what = "do it"
		if !slices.Contains(approval.Ops, f.control.Op) {
			return nil, usagef("--op %s is unknown; it is %s", quoted(string(f.control.Op)), screen.List(approval.Ops))
		}
		if question != "" {
			return nil, usagef("--op is for what is done to a run: name a question with --op resume --on QUESTION")
		}
		if f.control.Op == approval.OpCancel {
			f.control.On = cmp.Or(f.control.On, string(thread.CancelKeep))
		}
	}
	if f.life < time.Second || f.life > approval.MaxTokenLife {
		return nil, usagef("--ttl %v is not between 1s and %v", f.life, approval.MaxTokenLife)
	}
	signer, err := a.signer(f.key)
	if err != nil {
		return nil, err
	}
	if signer == nil {
		return nil, usagef("there is no key to sign with: set %s or give --key", envSigningKey)
	}
	if f.who = cmp.Or(f.who, signer.Key().Owner.Person); f.who == "" {
		return nil, usagef("--for is missing: the name of who is to %s", what)
	}
	return signer, nil
}

// claimsOf are the claims of a token about a question, or about the end of a pause.
func (a answers) claimsOf(ctx context.Context, svc service, thread, question string, f *tokenFlags) (claims approval.Claims, err error) {
	if f.control.Op == approval.OpUnpause {
		f.control.On, err = pausedOn(ctx, svc, thread)
		return f.control.Claims(thread, f.who), err
	}
	v, err := a.openApproval(ctx, svc, thread, question)
	if err != nil {
		return claims, err
	}
	return answerClaims(v, f.who), nil
}

// pausedOn is which pause of a thread is to end, "" when it is not paused.
func pausedOn(ctx context.Context, svc service, thread string) (string, error) {
	view, err := svc.Show(ctx, thread)
	if err != nil || view.Paused == nil {
		return "", err
	}
	return approval.PausedAt(view.Paused.At), nil
}
