package cli

import (
	"github.com/spf13/pflag"

	"superstep.dev/approval"
	"superstep.dev/approval/webhook"
)

// envNotifySecret holds what notices are signed with. It is no flag: those show in lists of processes.
const envNotifySecret = "SUPERSTEP_NOTIFY_SECRET"

// notifyFlags say whom a worker tells of questions.
type notifyFlags struct {
	urls []string
	link string
}

func (f *notifyFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.urls, "notify-url", nil, "`URL` to post questions, warnings and deadlines to, signed with "+
		envNotifySecret+"; may be repeated")
	flags.StringVar(&f.link, "notify-link", "", "`URL` where people answer, sent along: https://HOST/{thread}/{question}")
}

// openNotifier returns whom the worker tells, nil for nobody.
func (a *app) openNotifier(f notifyFlags) (approval.Notifier, error) {
	if len(f.urls) == 0 {
		if f.link != "" {
			return nil, usagef("--notify-link goes with --notify-url")
		}
		return nil, nil
	}
	secret, _ := a.env.LookupEnv(envNotifySecret)
	n, err := webhook.New(webhook.Config{URLs: f.urls, Secret: secret, Link: f.link})
	if err != nil {
		return nil, &usageError{message: "--notify-url and " + envNotifySecret + ": " + err.Error(), err: err}
	}
	return n, nil
}
