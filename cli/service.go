package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/cli/keyuse"
	"superstep.dev/cli/screen"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/announced"
	"superstep.dev/job"
	"superstep.dev/store"
	"superstep.dev/thread"
	"superstep.dev/thread/live/nats"
	"superstep.dev/thread/secret"
	"superstep.dev/thread/storage"
)

// service is what the commands ask of a server: the methods of [superstep.Client]. Tests script it.
type service interface {
	Start(ctx context.Context, req thread.StartRequest) (thread.View, error)
	Follow(ctx context.Context, since thread.View, on func(thread.Progress)) (thread.View, error)
	Stream(ctx context.Context, r thread.StreamRequest) iter.Seq2[thread.Part, error]
	List(ctx context.Context, q thread.ListQuery) ([]thread.View, error)
	Inbox(ctx context.Context, q thread.InboxQuery) (thread.InboxPage, error)
	Question(ctx context.Context, thread, id string) (thread.QuestionView, error)
	Viewed(ctx context.Context, thread, question, by string) error
	Audit(ctx context.Context, thread string) ([]approval.Entry, approval.Chain, error)
	AuditExport(ctx context.Context, thread string) (approval.Export, error)
	Show(ctx context.Context, thread string) (thread.View, error)
	State(ctx context.Context, req thread.StateRequest) (thread.StateView, error)
	History(ctx context.Context, req thread.HistoryRequest) ([]thread.CheckpointView, error)
	Erase(ctx context.Context, req thread.EraseRequest) (thread.Erasure, error)
	Prune(ctx context.Context, req thread.PruneRequest) (thread.Pruning, error)
	Checkpoint(ctx context.Context, req thread.CheckpointRequest) (thread.CheckpointRecord, error)
	Effects(ctx context.Context, req thread.EffectsRequest) (thread.EffectsView, error)
	Update(ctx context.Context, req thread.UpdateRequest) (thread.StateView, error)
	Fork(ctx context.Context, req thread.ForkRequest) (thread.View, error)
	Drain(ctx context.Context, req thread.DrainRequest) (thread.View, error)
	Pause(ctx context.Context, req thread.PauseRequest) (thread.PauseReply, error)
	Unpause(ctx context.Context, req thread.PauseRequest) (thread.PauseReply, error)
	SendEvent(ctx context.Context, req thread.EventRequest) (thread.EventReply, error)
	Resume(ctx context.Context, req thread.ResumeRequest) (thread.ResumeReply, error)
	Retry(ctx context.Context, req thread.RetryRequest) (thread.View, error)
	Cancel(ctx context.Context, req thread.CancelRequest) (thread.View, error)
	GraphSpec(ctx context.Context, name string) (*pregel.Spec, error)
	CreateSchedule(ctx context.Context, req thread.ScheduleRequest) (thread.ScheduleView, error)
	Schedules(ctx context.Context, limit int) ([]thread.ScheduleView, error)
	PauseSchedule(ctx context.Context, req thread.SchedulePause) (thread.ScheduleView, error)
	UnpauseSchedule(ctx context.Context, req thread.SchedulePause) (thread.ScheduleView, error)
	TriggerSchedule(ctx context.Context, id string) (thread.ScheduleView, error)
	DeleteSchedule(ctx context.Context, id string) error
	SubmitJob(ctx context.Context, req thread.SubmitJob) (job.View, error)
	Jobs(ctx context.Context, q thread.JobsQuery) ([]thread.JobItem, error)
	Job(ctx context.Context, id string) (thread.JobView, error)
	FollowJob(ctx context.Context, id string, after int64) iter.Seq2[job.Event, error]
	JobAnswer(ctx context.Context, id string) (thread.JobAnswer, error)
	StopJob(ctx context.Context, id string, h job.Halt) (job.View, error)
	FailJob(ctx context.Context, id string, h job.Halt) (job.View, error)
	RecoverJob(ctx context.Context, id string, r job.Recover) (job.View, error)
	RetrySubJob(ctx context.Context, id, subjob, lesson string) (job.View, error)
	DecidePlan(ctx context.Context, id string, d job.Decision) (job.View, error)
	ChangeExperts(ctx context.Context, id string, add []job.Profile, remove ...string) (job.View, error)
	LeaderExperts(ctx context.Context, leader string) ([]job.Profile, error)
	RaiseBudget(ctx context.Context, id string, b job.Budget) (job.View, error)
}

// taskRunner is a worker: the methods of [superstep.Worker].
type taskRunner interface {
	Run(ctx context.Context) error
}

// backend makes the two sides of a connection. Tests replace its parts.
type backend struct {
	dial      func(ctx context.Context, opts client.Options) (client.Client, error)
	service   func(c client.Client, cfg superstep.ClientConfig) (service, error)
	newWorker func(c client.Client, cfg superstep.WorkerConfig) (taskRunner, error)
	// keyUses returns the open runs of a namespace that need a key.
	keyUses func(ctx context.Context, c client.Client, namespace, key string) (keyuse.Uses, error)
	// announced opens the storage that a namespace names; nil asks none.
	announced func(ctx context.Context, c client.Client, namespace string) (*storage.Storage, error)
	// works returns an error when the server cannot do its work; nil asks none.
	works func(ctx context.Context, c client.Client, namespace string) error
	// folder is one that a namespace names under a key, "" for none; nil asks nobody.
	folder func(ctx context.Context, c client.Client, namespace, key string) (string, error)
	// announcedLive returns where live tokens go, as a namespace says, "" for nowhere; nil asks none.
	announcedLive func(ctx context.Context, c client.Client, namespace string) (string, error)
}

// temporalBackend is the one that talks to a Temporal server.
func temporalBackend() backend {
	return backend{
		dial:    dial,
		service: func(c client.Client, cfg superstep.ClientConfig) (service, error) { return superstep.NewClient(c, cfg) },
		newWorker: func(c client.Client, cfg superstep.WorkerConfig) (taskRunner, error) {
			return superstep.NewWorker(c, cfg)
		},
		keyUses: keyuse.OpenRuns,
		announced: func(ctx context.Context, c client.Client, namespace string) (*storage.Storage, error) {
			return storage.Announced(ctx, c, namespace, storage.Options{})
		},
		works:         works,
		folder:        announced.Folder,
		announcedLive: nats.Announced,
	}
}

// withService connects, calls do and disconnects. A call that Ctrl-C ended is reported as that.
func (a *app) withService(ctx context.Context, do func(svc service) error) error {
	a.sealed = a.tellOfFile
	opts, err := a.clientOptions()
	if err != nil {
		return err
	}
	opts.Logger = silentLogger()
	if a.conn.archive != "" {
		return a.withArchive(ctx, opts, do)
	}
	opts = superstep.Encoded(opts)
	c, err := a.backend.dial(ctx, opts)
	if err == nil {
		c, opts, err = a.findStorage(ctx, c, opts)
	}
	if err != nil {
		return interrupted(ctx, err, "interrupted")
	}
	defer c.Close()
	return a.over(ctx, c, opts, do)
}

// over calls do with what the commands ask of a connection.
func (a *app) over(ctx context.Context, c client.Client, opts client.Options, do func(svc service) error) error {
	tokens := &lazyLive{find: func() *nats.Transport { return a.liveTokens(ctx, c, opts, zap.NewNop()) }}
	defer tokens.close()
	a.tokens = tokens
	svc, err := a.backend.service(c, superstep.ClientConfig{
		TaskQueue: a.conn.taskQueue, Namespace: opts.Namespace, Graphs: a.graphs, Identity: a.userName(),
		DataConverter: opts.DataConverter, FailureConverter: opts.FailureConverter, Storage: a.storage, Transport: tokens,
	})
	if err != nil {
		return err
	}
	return interrupted(ctx, do(svc), "interrupted")
}

// tellOfFile says that the keys cannot be read again. Which key is missing the command's own error says.
func (a *app) tellOfFile(problem error) {
	if errors.Is(problem, secret.ErrBadKeys) {
		a.tell(problem)
	}
}

// tell says on stderr what is wrong beside the command, nil for nothing.
func (a *app) tell(problem error) {
	if problem != nil {
		fmt.Fprintln(a.stderr, a.secrets.Redact(screen.Clean(problem.Error())))
	}
}

// findStorage has the client of a server of this machine keep large values where the namespace says, unless flags or the environment
// have said where. It returns the client to use, which then is another one over the same connection, and its options. A server of another
// machine is not asked: its directories are not this machine's.
func (c *connection) findStorage(ctx context.Context, own client.Client, opts client.Options) (client.Client, client.Options, error) {
	if c.backend.announced == nil || c.storagePlace() != "" || !isLoopback(opts.HostPort) {
		return own, opts, nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	found, err := c.backend.announced(ctx, own, opts.Namespace)
	switch {
	case err != nil && (ctx.Err() != nil || isServers(err)):
		own.Close()
		return nil, opts, outOfWork(err)
	case err != nil:
		own.Close()
		return nil, opts, usagef("%w: give the place by --storage, or --storage %s to do without", err, noStorage)
	}
	if found == nil {
		return own, opts, nil
	}
	defer own.Close() // its share of the connection
	c.storage, opts.ExternalStorage = found, found.External()
	opts = superstep.Encoded(opts)
	stores, err := client.NewClientFromExistingWithContext(ctx, own, opts)
	if err != nil {
		return nil, opts, dialError(opts, err)
	}
	return stores, opts, nil
}

// isServers reports whether a server, or the way there, said an error.
func isServers(err error) bool {
	var said serviceerror.ServiceError
	return errors.As(err, &said)
}

// call connects, makes one call and shows what came back: whole to a program, as text shows it to a person.
func call[View any](ctx context.Context, a *app, do func(svc service) (View, error), text func(View)) error {
	return a.withService(ctx, func(svc service) error {
		view, err := do(svc)
		if err == nil {
			a.Show(view, func() { text(view) })
		}
		return err
	})
}

// listed is a list that is [] and not null when a program reads it.
func listed[T any](all []T) []T { return append([]T{}, all...) }

// dialTimeout bounds one attempt to reach the server. A refused connection is noticed at once; this is for addresses
// that swallow packets.
const dialTimeout = 5 * time.Second

// dial connects to the server and asks it who it is, so that a wrong address shows here and not in the first command.
func dial(ctx context.Context, opts client.Options) (client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := client.DialContext(ctx, superstep.Watched(opts))
	if err != nil {
		return nil, dialError(opts, err)
	}
	return c, nil
}

// dialError says in the user's terms why there is no connection.
func dialError(opts client.Options, err error) error {
	e := &thread.Error{Kind: thread.ErrNoServer, Cause: shortCause{err}}
	text := err.Error()
	switch {
	case isRefusal(err):
		e.Message = "the server at " + opts.HostPort + " does not accept the credentials"
		e.Do = "Check TEMPORAL_API_KEY or --api-key-file"
	case opts.ConnectionOptions.TLS != nil && (strings.Contains(text, "tls:") || strings.Contains(text, "x509:")):
		e.Message = "no TLS connection to " + opts.HostPort
		e.Do = "Check --tls-ca, --tls-server-name and --tls-cert"
	case isLoopback(opts.HostPort):
		e.Message, e.Cause = "no Temporal server at "+opts.HostPort, nil // "connection refused" adds nothing
		e.Do = "Start one (Superstep's devserver, or temporal server start-dev), or name another one with --address"
	default:
		e.Message = "no Temporal server at " + opts.HostPort
		e.Do = "Check --address or TEMPORAL_ADDRESS"
	}
	return e
}

// isRefusal reports whether a server answered and said no; asking again will not help.
func isRefusal(err error) bool {
	code := serviceerror.ToStatus(err).Code()
	return code == codes.PermissionDenied || code == codes.Unauthenticated
}

// isLoopback reports whether an address is on this machine.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// shortCause is an error of the connection without the layers of wrapping that say nothing to a user.
type shortCause struct{ error }

// Error implements error.
func (c shortCause) Error() string {
	text := c.error.Error()
	for _, layer := range []string{"failed reaching server: ", "transport: ", "authentication handshake failed: "} {
		text = strings.Replace(text, layer, "", 1)
	}
	if _, reason, ok := strings.Cut(text, "desc = "); ok {
		text = reason
	}
	return strings.Trim(text, `"`)
}

// Unwrap gives the whole error.
func (c shortCause) Unwrap() error { return c.error }

// The waits between attempts to reach the server.
const (
	firstRedial = 250 * time.Millisecond
	lastRedial  = 4 * time.Second
)

// connecting dials until a server answers: a worker is often started together with its server.
type connecting struct {
	dial    func(ctx context.Context, opts client.Options) (client.Client, error)
	timeout time.Duration
	logger  *zap.Logger
}

// connect returns a connection, or the last error after the timeout. A server that answers and refuses is final.
func (c connecting) connect(ctx context.Context, opts client.Options) (conn client.Client, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	err = await(ctx, c.logger.With(zap.String("address", opts.HostPort)), func() error {
		conn, err = c.dial(ctx, opts)
		return err
	})
	return conn, err
}

// await calls try until it succeeds, fails with an error that waiting does not mend, or ctx ends. It returns the last error of try.
func await(ctx context.Context, logger *zap.Logger, try func() error) error {
	wait := firstRedial
	for {
		err := try()
		if err == nil || !mayCome(err) {
			return err
		}
		missing := "no storage or store yet"
		if errors.Is(err, thread.ErrNoServer) {
			missing = "no Temporal server yet"
		}
		logger.Warn(missing, zap.NamedError("cause", err), zap.Duration("next_try_in", wait))
		if !waited(ctx, wait) {
			return err
		}
		wait = min(2*wait, lastRedial)
	}
}

// mayCome reports whether an error is of a server, a storage or a store that is away, and may be there soon.
func mayCome(err error) bool {
	away := errors.Is(err, thread.ErrNoServer) || errors.Is(err, thread.ErrStorage) || errors.Is(err, store.ErrUnavailable)
	return away && !isRefusal(err)
}

// reach connects to a server that can do its work, for as long as ctx is open. It returns the connection and its options, with the storage that
// the namespace names.
func (a operating) reach(ctx context.Context, opts client.Options, timeout time.Duration, logger *zap.Logger) (client.Client, client.Options, error) {
	var found client.Options
	c, err := connecting{timeout: timeout, logger: logger, dial: func(ctx context.Context, opts client.Options) (client.Client, error) {
		c, err := a.backend.dial(ctx, opts)
		if err == nil && a.backend.works != nil {
			if err = a.backend.works(ctx, c, opts.Namespace); err != nil {
				c.Close()
			}
		}
		if err == nil {
			c, found, err = a.findStorage(ctx, c, opts)
		}
		return c, err
	}}.connect(ctx, opts)
	return c, found, err
}

// reachStore opens the store, for as long as ctx is open.
func (a operating) reachStore(ctx context.Context, f storeFlag, c client.Client, opts client.Options, logger *zap.Logger) (s *superstep.Store, err error) {
	err = await(ctx, logger, func() error {
		s, err = a.findStore(ctx, f, c, opts)
		return err
	})
	return s, err
}

// works returns an error when a server is there and cannot do its work, for instance because its database is away. A refusal is
// no such error.
func works(ctx context.Context, c client.Client, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	_, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	switch serviceerror.ToStatus(err).Code() {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.ResourceExhausted, codes.Unknown:
		return outOfWork(err)
	}
	return nil
}

// outOfWork is the error of a server that is there and cannot do its work.
func outOfWork(err error) error {
	return &thread.Error{Kind: thread.ErrNoServer, Message: "the Temporal server is there and cannot do its work", Cause: shortCause{err},
		Do: "Look at its log: a disk that is full, or a database that is away or locked, shows there"}
}

// waited waits for d and reports whether ctx is still open then.
func waited(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
