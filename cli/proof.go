package cli

import (
	"cmp"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"superstep.dev/approval"
	"superstep.dev/approval/token"
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
	switch {
	case len(f.by) > maxName:
		return usagef("--by has at most %d bytes", maxName)
	case len(id) > maxName:
		return usagef("--id has at most %d bytes", maxName)
	}
	return checkLength("--reason", f.reason, maxReason)
}

// proof is who does something, and the token that proves it: the one that was given, or one that is made here, with the
// claims of who it is. A given token says who it is for, so that nobody has to. There is none without a key: where the
// workers' rules ask for none there need be none.
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
