package cli

import (
	"cmp"
	"context"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"superstep.dev/approval"
	"superstep.dev/approval/rules"
	"superstep.dev/approval/token"
	"superstep.dev/approval/webhook"
)

// envRules names the files of the worker's rules.
const envRules = "SUPERSTEP_APPROVAL_RULES"

// lookAtFiles is how often a worker looks whether its keys and rules have changed, for its log.
const lookAtFiles = 2 * time.Second

// maxLeeway bounds how far apart clocks may be said to be.
const maxLeeway = 5 * time.Minute

// gateFlags say what a worker verifies answers to approvals with.
type gateFlags struct {
	keys, rules string
	leeway      time.Duration
}

func (f *gateFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.keys, "approval-keys", "", "public keys that answers to approvals are verified with: PEM `FILES` or directories,"+
		" separated as in PATH ("+token.EnvKeys+")")
	flags.StringVar(&f.rules, "approval-rules", "", "who may approve what: YAML `FILES` or directories, as above ("+envRules+")")
	flags.DurationVar(&f.leeway, "approval-leeway", approval.DefaultLeeway, "`TIME` by which clocks may be apart: so much longer, and earlier,"+
		" a token is good than it says; up to 5m")
}

// gate is what a worker verifies answers with.
type gate struct {
	keys *token.Keyring
	book *rules.Book // nil: whoever is asked may answer
	// leeway is how far clocks may be apart.
	leeway time.Duration
}

// openGate reads keys and rules. Without keys there is no gate, and the worker takes no answer to an approval.
func (a operating) openGate(f gateFlags) (*gate, error) {
	if f.leeway < 0 || f.leeway > maxLeeway {
		return nil, usagef("--approval-leeway %v is not between 0s and %v", f.leeway, maxLeeway)
	}
	g := gate{leeway: f.leeway}
	var err error
	if fromEnv, ok := a.env.LookupEnv(token.EnvKeys); f.keys != "" {
		g.keys, err = token.Open(filepath.SplitList(f.keys)...)
	} else if ok && fromEnv != "" {
		g.keys, err = token.FromEnv()
	}
	if err != nil {
		return nil, wrongUse(err)
	}
	if f.rules == "" {
		f.rules, _ = a.env.LookupEnv(envRules)
	}
	if f.rules == "" && g.keys == nil {
		return nil, nil
	}
	if g.keys == nil {
		return nil, usagef("rules without keys let nobody approve anything: --approval-keys is missing")
	}
	if f.rules == "" {
		return &g, nil
	}
	if g.book, err = rules.Open(filepath.SplitList(f.rules)...); err != nil {
		return nil, usagef("--approval-rules: %w", err)
	}
	return &g, nil
}

// approvals is the gate as a worker takes it; nil for none.
func (g *gate) approvals() *approval.Gate {
	if g == nil {
		return nil
	}
	out := &approval.Gate{Keys: g.keys, Leeway: cmp.Or(g.leeway, approval.NoLeeway)}
	if g.book != nil {
		out.Policy, out.Directory = g.book, g.book
	}
	return out
}

// gateState is what a log line says of a gate.
type gateState struct{ keys, rules, keysProblem, rulesProblem string }

func (g *gate) state(ctx context.Context) (s gateState) {
	var err error
	if s.keys, err = g.keys.Health(); err != nil {
		s.keysProblem = err.Error()
	}
	if g.book == nil {
		return s
	}
	if s.rules, err = g.book.Version(ctx); err != nil {
		s.rulesProblem = err.Error()
	}
	return s
}

// watch logs what answers are verified with, and every change of it, until ctx ends.
func (g *gate) watch(ctx context.Context, logger *zap.Logger) {
	tick := time.NewTicker(lookAtFiles)
	defer tick.Stop()
	was := g.state(ctx)
	logger.Info("approvals are verified", zap.String("keys", was.keys), zap.String("rules", was.rules))
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := g.state(ctx)
		if now != was {
			now.log(logger)
		}
		was = now
	}
}

func (s gateState) log(logger *zap.Logger) {
	switch {
	case s.rulesProblem != "":
		logger.Error("approval rules cannot be used: nothing is approved until they can", zap.String("problem", s.rulesProblem))
	case s.keysProblem != "":
		logger.Error("approval keys cannot be used: nothing is approved until they can", zap.String("problem", s.keysProblem))
	default:
		logger.Info("approval keys or rules have changed", zap.String("keys", s.keys), zap.String("rules", s.rules))
	}
}

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
func (a operating) openNotifier(f notifyFlags) (approval.Notifier, error) {
	if len(f.urls) == 0 {
		if f.link != "" {
			return nil, usagef("--notify-link goes with --notify-url")
		}
		return nil, nil
	}
	secret, _ := a.env.LookupEnv(envNotifySecret)
	n, err := webhook.New(webhook.Config{URLs: f.urls, Secret: secret, Link: f.link})
	if err != nil {
		return nil, usagef("--notify-url and "+envNotifySecret+": %w", err)
	}
	return n, nil
}
