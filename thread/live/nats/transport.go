package nats

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.uber.org/zap"

	"superstep.dev/thread/live"
)

const (
	dialWithin = 2 * time.Second
	askWithin  = 5 * time.Second // of the server, about the stream
	redial     = 500 * time.Millisecond
	// silence is how often the server is asked for a sign of life; one that gives none three times is away.
	silence = 5 * time.Second
	// stalled bounds how long a write may wait for the server's socket.
	stalled = 5 * time.Second
	// lastWords bounds how long a transport that is closed waits for the server.
	lastWords = time.Second
	// recheck is how often the stream is looked for, which somebody may have deleted.
	recheck = 15 * time.Second
)

// errClosed is what a transport says that is closed.
var errClosed = errors.New("the transport of live tokens is closed")

// Transport is a live.Transport over a NATS server. Close it when nobody uses it any more.
type Transport struct {
	place   place
	name    naming
	convert converter.DataConverter
	log     *zap.Logger
	outbox  outbox
	id      string // of this process, in subjects of its marks

	began  sync.Once
	ctx    context.Context // until Close
	close  context.CancelFunc
	ended  sync.WaitGroup
	losses atomic.Int64 // of the connection
	marks  atomic.Int64 // that readers have asked for
	away   atomic.Bool  // it was said
	// unfollowed says that it was said that readers are refused.
	unfollowed atomic.Bool
	turn       chan struct{}

	mu    sync.Mutex
	fans  map[string]*fan // by thread
	link  *link           // nil while there is none
	up    chan struct{}   // closed when there is one
	blind bool            // it was said that something cannot be read
}

// link is a connection that is up, with the stream.
type link struct {
	conn   *nats.Conn
	stream jetstream.Stream
	down   chan struct{} // closed when it is no more
}

// Open returns a transport over the server at cfg.URL. It connects when it is first used, and as long as the server is away it is as if
// nobody had emitted anything.
//
// Errors: one that wraps [ErrBadURL], or about a file that the URL names.
func Open(cfg Config) (*Transport, error) {
	p, err := parse(cfg.URL)
	if err != nil {
		return nil, err
	}
	opts := nats.GetDefaultOptions()
	for _, o := range p.options { // a file that is missing is a mistake, and shows now
		if err := o(&opts); err != nil {
			return nil, fmt.Errorf("the server of live tokens: %w", err)
		}
	}
	t := &Transport{place: p, convert: cfg.DataConverter, log: cmp.Or(cfg.Logger, zap.NewNop()), turn: make(chan struct{}, 1),
		name: naming(cmp.Or(cfg.Namespace, client.DefaultNamespace)), id: hashed(rand.Text()), fans: map[string]*fan{}, up: make(chan struct{})}
	if t.convert == nil {
		t.convert = converter.GetDefaultDataConverter()
	}
	t.ctx, t.close = context.WithCancel(context.Background())
	return t, nil
}

// Close ends the transport: what is on its way is published while the server takes it at once, and the channels of subscribers are closed.
func (t *Transport) Close() {
	t.began.Do(func() {}) // one that was never used connects no more
	t.outbox.drain(lastWords)
	t.mu.Lock() // who subscribes now has begun to follow, or is told that it is closed
	t.close()
	t.mu.Unlock()
	t.ended.Wait()
}

// Publish implements live.Transport. It waits for nobody.
//
// Errors: of an emission above 1 MiB, of one that the DataConverter cannot encode, and of a transport that is closed.
func (t *Transport) Publish(_ context.Context, e live.Emission) error {
	if t.ctx.Err() != nil {
		return errClosed
	}
	data, err := t.encode(e)
	if err != nil {
		return err
	}
	t.begin()
	t.outbox.publish(e, t.name.task(e.Of()), data)
	return nil
}

// Ended implements live.Transport.
func (t *Transport) Ended(_ context.Context, task live.Task) error {
	if t.ctx.Err() != nil {
		return errClosed
	}
	data, err := t.encode(live.Emission{Thread: task.Thread, Run: task.Run, Task: task.Task})
	if err != nil {
		return err
	}
	t.begin()
	t.outbox.end(task, t.name.task(task), data)
	return nil
}

// begin connects, once.
func (t *Transport) begin() {
	t.began.Do(func() {
		t.ended.Go(t.connect)
		t.ended.Go(func() { t.outbox.run(t) })
	})
}

// connect keeps a connection until the transport is closed.
func (t *Transport) connect() {
	turned := func(*nats.Conn) {
		select {
		case t.turn <- struct{}{}:
		default:
		}
	}
	conn, err := nats.Connect(t.place.servers, append(t.place.options,
		nats.Name("superstep"), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(redial),
		nats.Timeout(dialWithin), nats.PingInterval(silence), nats.MaxPingsOutstanding(2), nats.FlusherTimeout(stalled),
		nats.ReconnectBufSize(-1), nats.ConnectHandler(turned), nats.ReconnectHandler(turned), nats.ClosedHandler(turned),
		nats.DisconnectErrHandler(func(c *nats.Conn, _ error) { t.losses.Add(1); turned(c) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { t.log.Debug("live tokens", zap.Error(err)) }))...)
	if err != nil {
		t.away.Store(true)
		t.log.Warn(noTokens, zap.Error(err))
		return
	}
	defer conn.Close()
	for t.ctx.Err() == nil {
		lost := t.losses.Load()
		l, err := t.prepare(conn)
		if err == nil {
			if t.away.Swap(false) {
				t.log.Info("live tokens are there again", zap.String("server", t.place.servers))
			}
			err = t.keep(l, lost)
		}
		if t.ctx.Err() == nil && !t.away.Swap(true) {
			t.log.Warn(noTokens, zap.String("server", t.place.servers), zap.Error(err))
		}
		t.pause(redial)
	}
}

// noTokens is what is said once when there is no server.
const noTokens = "no live tokens: what nodes emit comes with their results, until the server is there"

// pause waits until something happens to the connection, for a time at most.
func (t *Transport) pause(most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-t.turn:
	case <-timer.C:
	case <-t.ctx.Done():
	}
}

// keep shows a link to those who wait for one, until it is lost: the error says why.
func (t *Transport) keep(l *link, losses int64) (err error) {
	t.mu.Lock()
	t.link = l
	close(t.up)
	t.mu.Unlock()
	for err == nil {
		t.pause(recheck)
		switch {
		case t.ctx.Err() != nil:
			err = t.ctx.Err()
		case t.losses.Load() != losses || !l.conn.IsConnected():
			err = errDown
		default:
			ctx, cancel := context.WithTimeout(t.ctx, askWithin)
			_, err = l.stream.Info(ctx)
			cancel()
		}
	}
	t.mu.Lock()
	t.link, t.up = nil, make(chan struct{})
	t.mu.Unlock()
	close(l.down)
	return err
}

// await returns a link once there is one, nil when ctx is done.
func (t *Transport) await(ctx context.Context) *link {
	for {
		t.mu.Lock()
		l, up := t.link, t.up
		t.mu.Unlock()
		if l != nil {
			return l
		}
		select {
		case <-up:
		case <-ctx.Done():
			return nil
		}
	}
}

// streamName names the stream of all emissions.
const streamName = "SUPERSTEP_LIVE"

// The bounds of the stream.
const (
	streamBytes   = 256 << 20
	streamAge     = time.Hour
	mostOfTask    = live.LiveBacklog
	mostReaders   = 100_000 // threads that processes follow, each in each process
	maxMessage    = 1 << 20
	headersWithin = 512 // bytes that headers may take
)

// The oldest server: older ones keep the marks of tasks that have ended for as long as the stream, and lose what readers have not read
// when one goes.
const oldestMajor, oldestMinor = 2, 11

func tooOld(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return false // a build of somebody's own
	}
	return major < oldestMajor || major == oldestMajor && minor < oldestMinor
}

// prepare finds the stream, or makes it.
func (t *Transport) prepare(conn *nats.Conn) (*link, error) {
	if !conn.IsConnected() {
		return nil, cmp.Or(conn.LastError(), errors.New("no connection"))
	}
	if name := conn.ConnectedServerName(); t.place.id != "" && name != t.place.id {
		return nil, fmt.Errorf("the server there is named %q, not %q: it is another machine's, or another one took its port", name, t.place.id)
	}
	if v := conn.ConnectedServerVersion(); tooOld(v) {
		return nil, fmt.Errorf("the server there has version %s: live tokens need nats-server %d.%d or later", v, oldestMajor, oldestMinor)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(t.ctx, askWithin)
	defer cancel()
	stream, err := js.Stream(ctx, streamName)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: streamName, Subjects: []string{subjects + ".>"}, Storage: t.place.storage,
			Description: "what nodes of Superstep's threads emit while they run", MaxBytes: streamBytes, MaxAge: streamAge,
			MaxConsumers: mostReaders, MaxMsgsPerSubject: mostOfTask, MaxMsgSize: maxMessage + headersWithin, Discard: jetstream.DiscardOld, AllowRollup: true, AllowMsgTTL: true})
	}
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another process was faster
		stream, err = js.Stream(ctx, streamName)
	}
	if err != nil {
		return nil, fmt.Errorf("the stream %s: %w", streamName, err)
	}
	return &link{conn: conn, stream: stream, down: make(chan struct{})}, nil
}
