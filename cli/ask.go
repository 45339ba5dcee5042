package cli

import (
	"time"

	"github.com/spf13/pflag"

	"superstep.dev/approval"
)

// askFlags say who asks for something that is done to a run, and prove it.
type askFlags struct {
	by, token, key string
	reason         string
}

// register adds the flags; reasons says that there is a --reason among them.
func (f *askFlags) register(flags *pflag.FlagSet, reasons bool) {
	if reasons {
		flags.StringVar(&f.reason, "reason", "", "`TEXT` for those who look later")
	}
	flags.StringVar(&f.by, "by", "", "`NAME` of who asks (default: whose key it is, or your user name)")
	flags.StringVar(&f.token, "token", "", "`TOKEN` that proves it, where the workers' rules want that ("+envToken+")")
	flags.StringVar(&f.key, "key", "", "private key `FILE` to make a token with ("+envSigningKey+")")
}

// check refuses what no run takes.
func (f *askFlags) check() error {
	if err := checkReason(f.reason, maxDrainReason); err != nil {
		return err
	}
	if len(f.by) > maxThreadID {
		return usagef("--by has at most %d bytes", maxThreadID)
	}
	return nil
}

// asker is who asks for that to be done to a thread, and the token that proves it: the one that was given, or one that is
// made here. There is none without a key, and where the workers' rules ask for none there need be none.
func (a *app) asker(f askFlags, thread string, c approval.Control) (by, signed string, err error) {
	if given := a.given(replyFlags{token: f.token}); given != "" {
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
	by = first(f.by, signer.Key().Owner.Person, a.userName())
	claims := c.Claims(thread, by)
	claims.ExpiresAt = a.now().Add(controlLife)
	if signed, err = signer.Sign(claims); err != nil {
		return "", "", &usageError{message: err.Error(), err: err}
	}
	return by, signed, nil
}

// signs reports whether the environment has a key to sign with.
func (a *app) signs() bool {
	key, _ := a.env.LookupEnv(envSigningKey)
	return key != ""
}

// controlLife is how long a token is good that a command makes for itself.
const controlLife = 2 * time.Minute
