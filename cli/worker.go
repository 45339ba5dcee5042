package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/approval/token"
	"superstep.dev/internal/heaproom"
	"superstep.dev/internal/sdklog"
)

// workerFlags are the flags of worker.
type workerFlags struct {
	metricsAddr, readyFile       string
	logFormat, logLevel          string
	drainTimeout, connectTimeout time.Duration
	gate                         gateFlags
	auditKey                     string
	notify                       notifyFlags
}

func (a *app) workerCommand() *cobra.Command {
	var f workerFlags
	cmd := a.build(command{
		use: "worker", short: "Serve this program's graphs", group: groupOperate,
		about: `Takes tasks until SIGTERM or Ctrl-C, then drains: no new tasks, and running ones may finish up to
--drain-timeout. What is not finished then runs again on another worker. A second signal stops at once.`,
		example: []string{
			"worker",
			"worker --address temporal:7233 --metrics-addr 0.0.0.0:9090 --log-format json",
			"worker --ready-file /tmp/worker.ready --drain-timeout 2m",
		},
		run: func(cmd *cobra.Command, _ []string) error {
			return a.work(cmd.Context(), f)
		},
	})
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.metricsAddr, "metrics-addr", "", "serve /metrics and /healthz at `HOST:PORT` (default: not at all)")
	flags.StringVar(&f.readyFile, "ready-file", "", "`FILE` to write the pid to while tasks are taken")
	flags.DurationVar(&f.drainTimeout, "drain-timeout", 30*time.Second, "`TIME` that running tasks may take to finish")
	flags.DurationVar(&f.connectTimeout, "connect-timeout", 30*time.Second, "`TIME` to wait for the server")
	f.gate.register(flags)
	flags.StringVar(&f.auditKey, "audit-key", "", "private key `FILE` that exported audits are signed with ("+token.EnvAuditKey+")")
	f.notify.register(flags)
	flags.StringVar(&f.logFormat, "log-format", "console", "`FORMAT`: console or json")
	flags.StringVar(&f.logLevel, "log-level", "info", "`LEVEL`: debug, info, warn or error")
	return cmd
}

// workerProgram is the worker command as a program of its own: no sub-command serves.
func (a *app) workerProgram() *cobra.Command {
	root := a.workerCommand()
	root.Use, root.GroupID = a.program, ""
	root.Example = strings.ReplaceAll(root.Example, "  "+a.program+" worker", "  "+a.program)
	for _, cmd := range []*cobra.Command{a.healthcheckCommand(), a.versionCommand()} {
		cmd.GroupID = ""
		root.AddCommand(cmd)
	}
	return a.asRoot(root, workerExits)
}

// check refuses flags before anything is opened.
func (f *workerFlags) check() error {
	if f.drainTimeout <= 0 {
		return usagef("--drain-timeout %v is not above 0", f.drainTimeout)
	}
	if f.connectTimeout <= 0 {
		return usagef("--connect-timeout %v is not above 0", f.connectTimeout)
	}
	return nil
}

// work serves the graphs until ctx ends.
func (a *app) work(ctx context.Context, f workerFlags) error {
	if len(a.graphs)+len(a.leaders) == 0 {
		return usagef("this program has no graphs to serve: build one with cli.Worker(yourgraph.Graph())")
	}
	if err := f.check(); err != nil {
		return err
	}
	g, err := a.openGate(f.gate)
	if err != nil {
		return err
	}
	heads, err := openAuditKey(f.auditKey)
	if err != nil {
		return err
	}
	told, err := a.openNotifier(f.notify)
	if err != nil {
		return err
	}
	opts, err := a.clientOptions()
	if err != nil {
		return err
	}
	logger, err := newLogger(redactingWriter{a, a.stderr}, f.logFormat, f.logLevel)
	if err != nil {
		return err
	}
	if opts.ConnectionOptions.GrpcCompression == nil {
		// The records of fused supersteps are compressed already: doing it again costs the worker more than all the rest
		// of a superstep.
		opts.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	}
	heaproom.Give()
	opts.Logger = sdklog.New(logger.Named("temporal"))
	ops, err := startOperations(f.metricsAddr, logger)
	if err != nil {
		return err
	}
	defer ops.close()
	opts.MetricsHandler = ops.metrics
	opts = superstep.Encoded(opts)
	c, err := connecting{dial: a.backend.dial, timeout: f.connectTimeout, logger: logger}.connect(ctx, opts)
	if err != nil {
		return interrupted(ctx, err, "stopped before the worker was ready")
	}
	defer c.Close()
	if g != nil {
		watching, stop := context.WithCancel(ctx)
		defer stop()
		go g.watch(watching, logger)
	}
	ops.health.serverAnswers(c.CheckHealth)
	return a.serve(ctx, c, superstep.WorkerConfig{
		Graphs: a.graphs, Leaders: a.leaders, TaskQueue: a.conn.taskQueue,
		DataConverter: opts.DataConverter, FailureConverter: opts.FailureConverter,
		Options: worker.Options{WorkerStopTimeout: f.drainTimeout},
		Logger:  logger, Gate: g.approvals(), Notify: told, AuditSigner: heads,
	}, f, ops)
}

// openAuditKey reads the key that audits are signed with; nil when there is none.
func openAuditKey(file string) (approval.HeadSigner, error) {
	s, err := token.AuditSigner(file)
	if err != nil {
		return nil, &usageError{message: "--audit-key: " + err.Error(), err: err}
	}
	if s == nil {
		return nil, nil
	}
	return s, nil
}

// serve runs the worker over a connection and tells the world when it is ready and when it has drained.
func (a *app) serve(ctx context.Context, c client.Client, cfg superstep.WorkerConfig, f workerFlags, ops *operations) error {
	ready := readyFile(f.readyFile)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cfg.OnReady = func() {
		if err := ready.write(os.Getpid()); err != nil {
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
	drain := newDrain(ctx, a.now, func() {
		ops.health.set(healthDraining)
		ready.remove(os.Getpid())
		cfg.Logger.Info("draining: no new tasks", zap.Duration("at_most", f.drainTimeout))
	})
	err = w.Run(ctx)
	drained, took := drain.end()
	ready.remove(os.Getpid())
	if !drained {
		return stoppedEarly(err)
	}
	if cause := context.Cause(ctx); errors.Is(cause, errNotBegun) {
		return cause
	}
	a.showDrained(took, f.drainTimeout)
	return nil
}

// stoppedEarly is the error of a worker that ended although nobody asked it to.
func stoppedEarly(err error) error {
	if err == nil {
		return errors.New("the worker stopped by itself")
	}
	return fmt.Errorf("worker: %w", err)
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

func (a *app) showReady(metrics string) {
	e := workerEvent{Event: "ready", PID: os.Getpid(), Graphs: a.graphNames(), Leaders: a.leaderNames(), TaskQueue: a.conn.taskQueue, Metrics: metrics}
	if a.json() {
		a.writeJSONLine(e) // a failed write is kept by stdout
		return
	}
	if metrics != "" {
		metrics = "  metrics " + metrics
	}
	serves := "  graphs " + list(e.Graphs)
	if len(e.Leaders) > 0 {
		serves = strings.TrimSuffix(serves, "  graphs ") + "  leaders " + list(e.Leaders)
	}
	a.printf("worker ready%s  task queue %s  pid %d%s\n", serves, clean(e.TaskQueue), e.PID, metrics)
}

// showDrained says whether running tasks could finish. The SDK does not report it; a drain as long as it was allowed
// to be means that they could not.
func (a *app) showDrained(took, allowed time.Duration) {
	e := workerEvent{Event: "drained", PID: os.Getpid(), TookMS: took.Milliseconds(), TimedOut: took >= allowed}
	switch {
	case a.json():
		a.writeJSONLine(e) // a failed write is kept by stdout
	case e.TimedOut:
		a.printf("worker stopped  pid %d  tasks still ran after %v; they run again on another worker\n", e.PID, allowed)
	default:
		a.printf("worker drained  pid %d  in %s\n", e.PID, shortDuration(took))
	}
}
