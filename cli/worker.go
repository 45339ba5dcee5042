package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"superstep.dev"
	"superstep.dev/approval/token"
	"superstep.dev/cli/screen"
	"superstep.dev/internal/heaproom"
	"superstep.dev/internal/sdklog"
	"superstep.dev/internal/telemetry"
)

// operating are the commands of those who run workers.
type operating struct{ *app }

// workerFlags are the flags of worker.
type workerFlags struct {
	metricsAddr                  string
	ready                        readyFile
	logFormat, logLevel          string
	drainTimeout, connectTimeout time.Duration
	lostAfter                    time.Duration
	gate                         gateFlags
	auditKey                     string
	notify                       notifyFlags
	store                        storeFlag
}

func (a operating) workerCommand() *cobra.Command {
	var f workerFlags
	return a.build(command{
		name: "worker",
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&f.metricsAddr, "metrics-addr", "", "serve /metrics and /healthz at `HOST:PORT` (default: not at all)")
			flags.StringVar((*string)(&f.ready), "ready-file", "", "`FILE` to write the pid to while tasks are taken")
			flags.DurationVar(&f.drainTimeout, "drain-timeout", 30*time.Second, "`TIME` that running tasks may take to finish")
			flags.DurationVar(&f.connectTimeout, "connect-timeout", 30*time.Second, "`TIME` to wait for the server, its database, the storage and the store")
			flags.DurationVar(&f.lostAfter, "lost-after", superstep.DefaultLostAfter, "`TIME` of silence after which a worker's tasks are given to another one;"+
				" more where machines stand still for longer")
			f.gate.register(flags)
			flags.StringVar(&f.auditKey, "audit-key", "", "private key `FILE` that exported audits are signed with ("+token.EnvAuditKey+")")
			f.notify.register(flags)
			f.store.register(flags)
			choiceVar(flags, &f.logFormat, "log-format", "console", []string{"console", "json"}, "`FORMAT`: console or json")
			choiceVar(flags, &f.logLevel, "log-level", "info", []string{"debug", "info", "warn", "error"}, "`LEVEL`: debug, info, warn or error")
		},
		run: func(ctx context.Context, _ []string) error { return a.work(ctx, f) },
	})
}

// workerProgram is the worker command as a program of its own: no sub-command serves.
func (a operating) workerProgram() *cobra.Command {
	root := a.workerCommand()
	root.Use = a.program
	root.Example = strings.ReplaceAll(root.Example, "  "+a.program+" worker", "  "+a.program)
	root.AddCommand(a.healthcheckCommand(), a.versionCommand())
	return a.asRoot(root, "worker")
}

// config is what the worker is made of, as far as flags, files and the environment say; g is nil for no gate. Whatever is
// wrong is found before anything is opened.
func (a operating) config(ctx context.Context, f workerFlags) (cfg superstep.WorkerConfig, opts client.Options, g *gate, err error) {
	switch {
	case len(a.graphs)+len(a.leaders) == 0:
		err = usagef("this program has no graphs to serve: build one with cli.Worker(yourgraph.Graph())")
	case f.drainTimeout <= 0:
		err = usagef("--drain-timeout %v is not above 0", f.drainTimeout)
	case f.connectTimeout <= 0:
		err = usagef("--connect-timeout %v is not above 0", f.connectTimeout)
	case f.lostAfter < superstep.LeastLostAfter:
		err = usagef("--lost-after %v is below %v", f.lostAfter, superstep.LeastLostAfter)
	}
	if err == nil {
		g, err = a.openGate(f.gate)
	}
	cfg = superstep.WorkerConfig{Graphs: a.graphs, Leaders: a.leaders, TaskQueue: a.conn.taskQueue, Gate: g.approvals(),
		LostAfter: f.lostAfter, Options: worker.Options{WorkerStopTimeout: f.drainTimeout}}
	if err == nil {
		var heads *token.Signer
		if heads, err = token.AuditSigner(f.auditKey); err != nil {
			err = usagef("--audit-key: %w", err)
		} else if heads != nil {
			cfg.AuditSigner = heads
		}
	}
	if err == nil {
		cfg.Notify, err = a.openNotifier(f.notify)
	}
	cfg.Logger = newLogger(a.secrets.Writer(a.stderr), f.logFormat, f.logLevel)
	a.sealed = func(problem error) {
		if problem != nil {
			cfg.Logger.Error("what is stored cannot be read with these keys, or the keys cannot be read again", zap.Error(problem))
		} else {
			cfg.Logger.Info("the keys are read again")
		}
	}
	if err == nil {
		err = await(ctx, cfg.Logger, func() error {
			opts, err = a.clientOptions()
			return err
		})
	}
	opts = superstep.Encoded(opts)
	opts.Logger = sdklog.New(cfg.Logger.Named("temporal"))
	if opts.ConnectionOptions.GrpcCompression == nil {
		// The records of fused supersteps are compressed already: doing it again costs the worker more than all the rest
		// of a superstep.
		opts.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	}
	return cfg, opts, g, err
}

// work serves the graphs until ctx ends.
func (a operating) work(ctx context.Context, f workerFlags) error {
	if err := f.ready.check(); err != nil {
		return err
	}
	soon, stop := context.WithTimeout(ctx, max(f.connectTimeout, 0)) // for all that has to be there, together
	defer stop()
	cfg, opts, g, err := a.config(soon, f)
	if err != nil {
		return interrupted(ctx, err, "stopped before the worker was ready")
	}
	heaproom.Give()
	ops, err := startOperations(f.metricsAddr, a.program, cfg.Logger)
	if err != nil {
		return err
	}
	defer ops.close()
	opts.MetricsHandler, cfg.Traces = ops.metrics.Handler, ops.traces.Provider
	c, opts, err := a.reach(soon, opts, f.connectTimeout, cfg.Logger)
	if err != nil {
		return interrupted(ctx, err, "stopped before the worker was ready")
	}
	defer c.Close()
	if cfg.Store, err = a.reachStore(soon, f.store, c, opts, cfg.Logger); err != nil {
		return interrupted(ctx, err, "stopped before the worker was ready")
	}
	defer cfg.Store.Close()
	cfg.DataConverter, cfg.FailureConverter, cfg.Storage = opts.DataConverter, opts.FailureConverter, a.storage
	if tokens := a.liveTokens(ctx, c, opts, cfg.Logger); tokens != nil {
		defer tokens.Close()
		cfg.Transport = tokens
	}
	if g != nil {
		watching, stop := context.WithCancel(ctx)
		defer stop()
		go g.watch(watching, cfg.Logger)
	}
	ops.health.serverAnswers(c.CheckHealth)
	if err := a.measureQuestions(c, opts, ops); err != nil {
		return err
	}
	return a.serve(ctx, c, cfg, f, ops)
}

// measureQuestions has what waits for people measured beside what the worker counts.
func (a operating) measureQuestions(c client.Client, opts client.Options, ops *operations) error {
	over := sync.OnceValues(func() (*superstep.Client, error) { // once somebody measures
		return superstep.NewClient(c, superstep.ClientConfig{TaskQueue: a.conn.taskQueue, Namespace: opts.Namespace, Identity: opts.Identity,
			DataConverter: opts.DataConverter, FailureConverter: opts.FailureConverter, Storage: a.storage})
	})
	err := ops.metrics.Questions(func(ctx context.Context) ([]telemetry.Open, error) {
		svc, err := over()
		if err != nil {
			return nil, err
		}
		open, err := svc.OpenQuestions(ctx, append(namesOf(a.graphs), namesOf(a.leaders)...)...)
		seen := make([]telemetry.Open, len(open))
		for i, q := range open {
			seen[i] = telemetry.Open{Graph: q.Graph, About: q.About, Count: int64(q.Open), Oldest: q.Oldest}
		}
		return seen, err
	})
	if err != nil {
		err = fmt.Errorf("metrics: %w", err)
	}
	return err
}

// serve runs the worker over a connection and tells the world when it is ready and when it has drained.
func (a operating) serve(ctx context.Context, c client.Client, cfg superstep.WorkerConfig, f workerFlags, ops *operations) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer f.ready.remove(os.Getpid())
	cfg.OnReady = func() {
		if err := f.ready.write(os.Getpid()); err != nil {
			cancel(err) // whoever waits for the file would wait for ever
			return
		}
		ops.health.set(healthReady)
		a.showReady(ops.addr())
	}
	w, err := a.backend.newWorker(c, cfg)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	drained := make(chan time.Time, 1) // when it began
	undrained := context.AfterFunc(ctx, func() {
		at := a.Now()
		ops.health.set(healthDraining)
		f.ready.remove(os.Getpid())
		cfg.Logger.Info("draining: no new tasks", zap.Duration("at_most", f.drainTimeout))
		drained <- at
	})
	err = w.Run(ctx)
	if undrained() { // nobody asked it to end
		if err == nil {
			return errors.New("the worker stopped by itself")
		}
		return fmt.Errorf("worker: %w", err)
	}
	began := <-drained
	if cause := context.Cause(ctx); errors.Is(cause, errNotBegun) {
		return cause
	}
	a.showDrained(a.Now().Sub(began), f.drainTimeout)
	return nil
}

// workerEvent is what a worker tells programs.
type workerEvent struct {
	Event     string   `json:"event"`
	PID       int      `json:"pid"`
	Graphs    []string `json:"graphs,omitempty"`
	Leaders   []string `json:"leaders,omitempty"`
	TaskQueue string   `json:"task_queue,omitempty"`
	Metrics   string   `json:"metrics,omitempty"`
	TookMS    int64    `json:"took_ms,omitempty"`
	TimedOut  bool     `json:"timed_out,omitempty"`
}

func (a operating) showReady(metrics string) {
	e := workerEvent{Event: "ready", PID: os.Getpid(), Graphs: namesOf(a.graphs), Leaders: namesOf(a.leaders), TaskQueue: a.conn.taskQueue, Metrics: metrics}
	a.ShowLine(e, func() {
		serves := ""
		if len(e.Graphs) > 0 || len(e.Leaders) == 0 {
			serves = "  graphs " + screen.List(e.Graphs)
		}
		if len(e.Leaders) > 0 {
			serves += "  leaders " + screen.List(e.Leaders)
		}
		if metrics != "" {
			metrics = "  metrics " + metrics
		}
		a.Printf("worker ready%s  task queue %s  pid %d%s\n", serves, screen.Clean(e.TaskQueue), e.PID, metrics)
	})
}

// showDrained says whether running tasks could finish. The SDK does not report it; a drain as long as it was allowed
// to be means that they could not.
func (a operating) showDrained(took, allowed time.Duration) {
	e := workerEvent{Event: "drained", PID: os.Getpid(), TookMS: took.Milliseconds(), TimedOut: took >= allowed}
	a.ShowLine(e, func() {
		if e.TimedOut {
			a.Printf("worker stopped  pid %d  tasks still ran after %v; they run again on another worker\n", e.PID, allowed)
			return
		}
		a.Printf("worker drained  pid %d  in %s\n", e.PID, screen.Duration(took))
	})
}

// writeWhole writes a file that is there only when it is whole: whoever waits for it never reads half of it.
func writeWhole(path string, write func(io.Writer) error) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	if err = errors.Join(write(temp), temp.Sync(), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		os.Remove(temp.Name()) // what is left of the attempt; the error to report is the first one
	}
	return err
}

// readyFile is a file that exists while a worker takes tasks; it holds the worker's pid. "" is none.
type readyFile string

// check says why the file could not be written, before anything begins: nil means that it could.
func (f readyFile) check() error {
	if f == "" {
		return nil
	}
	if info, err := os.Stat(string(f)); err == nil && info.IsDir() {
		return notBegun("--ready-file", fmt.Errorf("%s is a directory", f))
	}
	tried, err := os.CreateTemp(filepath.Dir(string(f)), ".ready-*")
	if err != nil {
		return notBegun("--ready-file", err)
	}
	return errors.Join(tried.Close(), os.Remove(tried.Name()))
}

func (f readyFile) write(pid int) error {
	if f == "" {
		return nil
	}
	if err := writeWhole(string(f), func(w io.Writer) error {
		_, err := fmt.Fprintln(w, pid)
		return err
	}); err != nil {
		return notBegun("--ready-file", err)
	}
	return nil
}

// remove takes the file away unless another worker has written it since: a successor may start while this one drains.
func (f readyFile) remove(pid int) {
	if f == "" {
		return
	}
	text, err := os.ReadFile(string(f))
	if err == nil && strings.TrimSpace(string(text)) == strconv.Itoa(pid) {
		os.Remove(string(f)) // already gone is as good
	}
}
