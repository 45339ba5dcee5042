package main

import (
	"context"
	_ "embed" // the help
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/temporal"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// ballast is how much more garbage there may be than Go lets be, in bytes. Go collects when the heap has doubled: a server that lives on
// 80 MB would do so with every 66 short runs, for a tenth of a second of both processors of a small machine.
const ballast = 256 << 20

// run serves until ctx ends, and then stops in order; that is no error. It
// prints one line to stdout when it is ready.
func run(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	// It counts as living, and takes no memory, since nobody touches it.
	defer runtime.KeepAlive(make([]byte, ballast))

	level, err := o.level()
	if err != nil {
		return err
	}
	store, err := openStore(ctx, o)
	if err != nil {
		if ctx.Err() != nil {
			return nil // told to stop while it waited for a database
		}
		return err
	}
	defer func() { err = errors.Join(err, store.close()) }()

	told, err := openFolders(o)
	if err != nil {
		return err
	}
	endpoints, ports, err := reserve(o)
	if err != nil {
		return err
	}
	defer ports.release()

	zapLogger, logLevel := newLogger(level)
	d := &devserver{
		options:       o,
		store:         store,
		announcements: told,
		endpoints:     endpoints,
		logger:        serverLogger(zapLogger),
		zap:           zapLogger,
		logLevel:      logLevel,
		readyFile:     readyFile(o.readyFile),
	}
	// One that was killed leaves its ready file behind. Only now is it certain
	// that it is not the file of one that runs.
	if err := d.readyFile.prepare(); err != nil {
		return err
	}
	ports.release()
	if err := d.start(); err != nil {
		return errors.Join(err, d.stop())
	}
	if warning := o.warning(); warning != "" {
		fmt.Fprintln(stderr, warning)
	}
	return errors.Join(d.serve(ctx, stdout), d.stop())
}

// devserver is one running server with what belongs to it.
type devserver struct {
	options       options
	store         store
	announcements announcements
	endpoints     endpoints
	logger        log.Logger
	zap           *zap.Logger
	logLevel      zap.AtomicLevel
	readyFile     readyFile

	server temporal.Server // nil until started
	stopUI func()          // nil until started
	live   liveServer      // none until started
}

func (d *devserver) start() error {
	var err error
	if d.live, err = startLive(d.endpoints.live, d.options.liveDir(), d.zap); err != nil {
		return err
	}
	d.announcements[liveKey] = d.live.announced
	server, err := newServer(d.endpoints, d.store.persistence(), d.options.stock, d.logger)
	if err != nil {
		return err
	}
	d.server = server
	if err := server.Start(); err != nil {
		return fmt.Errorf("start the Temporal server (if its database is to blame, another one helps): %w", err)
	}
	if !d.options.headless {
		if d.stopUI, err = startUI(d.endpoints.ui, d.endpoints.frontend, d.options.hosts); err != nil {
			return err
		}
	}
	return nil
}

// serve announces the server once it is ready and returns when ctx ends. Being
// told to stop before it is ready is no error either.
func (d *devserver) serve(ctx context.Context, stdout io.Writer) error {
	if err := awaitReady(ctx, d.endpoints, d.announcements, log.NewSdkLogger(d.logger)); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	if err := d.readyFile.write(dialable(d.endpoints.frontend).String()); err != nil {
		return err
	}
	fmt.Fprintln(stdout, d.announcement())
	<-ctx.Done()
	return nil
}

// stop ends what start began, the Temporal server last: the Web UI asks it, and
// who misses live tokens has them from there. Callers in flight get an error and
// try again; what they were told before is in the database.
func (d *devserver) stop() error {
	err := d.readyFile.remove()
	if d.stopUI != nil {
		d.stopUI()
	}
	err = errors.Join(err, d.live.stop())
	if d.server == nil {
		return err
	}
	// The services go down one after another and complain about each other.
	if d.logLevel.Level() > zapcore.InfoLevel {
		d.logLevel.SetLevel(zapcore.FatalLevel)
	}
	if stopErr := d.server.Stop(); stopErr != nil {
		err = errors.Join(err, fmt.Errorf("stop the Temporal server (what it acknowledged is kept): %w", stopErr))
	}
	return err
}

// announcement is the line that says where everything is.
func (d *devserver) announcement() string {
	parts := []string{"devserver " + d.endpoints.frontend.String()}
	if d.endpoints.ui.IsValid() {
		parts = append(parts, "web UI "+uiURL(d.endpoints.ui))
	}
	parts = append(parts, "db "+d.store.name())
	if d.options.stock {
		parts = append(parts, "stock settings")
	}
	return strings.Join(parts, "   ")
}

// store is where a server keeps everything: laid out for its version, holding the
// namespace, and locked against other devservers.
type store interface {
	// name says in messages which one it is. It holds no secret.
	name() string
	// persistence is how the server opens it.
	persistence() config.Persistence
	// close lets the next devserver have it, after the server has stopped.
	close() error
}

// openStore opens what the flags name, and sets it up when it is new.
func openStore(ctx context.Context, o options) (store, error) {
	if o.postgres != "" {
		return openPostgres(ctx, o.postgres)
	}
	return openSQLite(o.db)
}

// help is what --help says before the flags, and behind a line of its own examples.
//
//go:embed help.txt
var help string

// execute runs the command line and returns the exit code: 0 after a clean stop
// or --help, 1 after an error, which is one line on stderr.
func execute(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// Once stopping has begun a second signal must end the process at once, as
	// its default action does: the file is safe either way.
	context.AfterFunc(ctx, stop)

	cmd := newCommand()
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(stderr, "devserver:", oneLine(err))
		return 1
	}
	return 0
}

func newCommand() *cobra.Command {
	var o options
	long, examples, _ := strings.Cut(help, "\n\nExamples:\n")
	cmd := &cobra.Command{
		Use:     "devserver",
		Short:   "A Temporal server with Web UI in one process, for developing with Superstep",
		Long:    long,
		Example: strings.TrimRight(examples, "\n"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.choose(cmd.Flags().Changed, os.Getenv(envPostgres)); err != nil {
				return err
			}
			if err := o.validate(); err != nil {
				return err
			}
			return run(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	o.register(cmd.Flags())
	cmd.AddCommand(vacuumCommand())
	return cmd
}

// oneLine joins the lines of an error, since some of the server's have several.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}

func main() {
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}
