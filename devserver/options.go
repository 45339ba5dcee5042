package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.temporal.io/server/common/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// inMemory is the value of --db that keeps nothing on disk.
const inMemory = ":memory:"

// maxPort is the highest TCP port.
const maxPort = 65535

// options are the flags, as given.
type options struct {
	db        string
	values    string
	storeDir  string
	postgres  string // a DSN, which may hold a password: never to be printed
	ip        string
	hosts     []string
	port      int
	uiPort    int
	uiNamed   bool // by a flag
	live      string
	livePort  int
	liveNamed bool // by a flag
	headless  bool
	stock     bool
	logLevel  string
	readyFile string
}

func (o *options) register(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVar(&o.db, "db", "superstep.db", "SQLite `file`, created when missing; "+inMemory+" keeps nothing")
	f.StringVar(&o.postgres, "postgres", "", "`DSN` of a PostgreSQL server (12 or later) to use instead of a file, such as\n"+
		"postgres://me@localhost/superstep; that database and superstep_visibility are\n"+
		"created when missing. A password is better kept in $"+envPostgres+", which\n"+
		"holds the whole DSN, or in PostgreSQL's own $PGPASSWORD or ~/.pgpass")
	f.StringVar(&o.values, "values", "", "`directory` where the programs of this machine keep large values; beside a\n"+
		"database file it is FILE"+valuesFolder.suffix+" unless this is "+noFolder+", else it is none")
	f.StringVar(&o.storeDir, "store", "", "`directory` where the programs of this machine keep the store of graphs; beside a\n"+
		"database file it is FILE"+storeFolder.suffix+" unless this is "+noFolder+", else it is none")
	f.IntVar(&o.port, "port", 7233, "port of the Temporal API (gRPC); 0 picks a free one")
	f.IntVar(&o.uiPort, "ui-port", 8233, "port of the Web UI (HTTP); 0 picks a free one. Without\n"+
		"it --port + 1000, or the next port that is free")
	f.StringVar(&o.live, "live", "", "`directory` that keeps what nodes emit while they run, for who reads it live;\n"+
		"beside a database file it is FILE"+liveSuffix+", else it is in memory; "+noLive+" serves none")
	f.IntVar(&o.livePort, "live-port", 8234, "port of the live tokens (NATS), on loopback; 0 picks a free one.\n"+
		"Without it --port + 1001, or the next port that is free")
	f.StringVar(&o.ip, "ip", "127.0.0.1", "`address` both listen on; 0.0.0.0 is every interface")
	f.StringArrayVar(&o.hosts, "host", nil, "a `NAME` under which browsers reach the Web UI, beside localhost and IP\n"+
		"addresses; may be repeated")
	f.BoolVar(&o.headless, "headless", false, "serve no Web UI")
	f.BoolVar(&o.stock, "stock", false, "leave the server as Temporal ships it, to measure what an untuned cluster\n"+
		"does: its settings (one run then takes about 20 steps a second), and\n"+
		"services that call each other over loopback")
	f.StringVar(&o.readyFile, "ready-file", "", "`file` that appears, holding host:port of the Temporal API, once the\n"+
		"server is ready, and goes when it stops; scripts wait for it")
	f.StringVar(&o.logLevel, "log-level", "warn", "what the server logs to stderr: debug, info, warn or error")
}

// folder is where a folder lies of whose flag this is the value, "" for nowhere.
func (o *options) folder(f folder, given string) string {
	switch {
	case given == noFolder:
		return ""
	case given == "" && o.postgres == "" && o.db != inMemory:
		return o.db + f.suffix
	}
	return given
}

// liveDir is where live tokens are kept, "" for in memory.
func (o *options) liveDir() string {
	if o.live == "" && o.postgres == "" && o.db != inMemory {
		return livePath(o.db)
	}
	return o.live
}

// envPostgres holds the DSN where --postgres would show a password to everybody
// who lists processes.
const envPostgres = "SUPERSTEP_POSTGRES"

// choose settles which database the flags and the environment name: a flag comes
// before the environment, and two flags contradict each other.
func (o *options) choose(given func(flag string) bool, env string) error {
	switch {
	case given("db") && given("postgres"):
		return errors.New("--db and --postgres exclude each other: give one")
	case given("postgres") && o.postgres == "":
		return errors.New("--postgres is empty: give a DSN such as postgres://me@localhost/superstep")
	case !given("db") && !given("postgres"):
		o.postgres = env
	}
	o.choosePorts(given)
	return nil
}

// besidePort is the distance between --port and the first of the ports that no flag names.
const besidePort = 1000

// choosePorts gives the ports that no flag names: as far from --port as they are by default, so that two devservers need nothing but two values
// of --port. Where such a port is taken, the next free one is used.
func (o *options) choosePorts(given func(flag string) bool) {
	o.uiNamed, o.liveNamed = given("ui-port"), given("live-port")
	for i, p := range []struct {
		port  *int
		named bool
	}{{&o.uiPort, o.uiNamed}, {&o.livePort, o.liveNamed}} {
		switch {
		case p.named || !given("port"):
		case o.port == 0 || o.port+besidePort+i > maxPort:
			*p.port = 0
		default:
			*p.port = o.port + besidePort + i
		}
	}
}

// validate reports the first flag whose value cannot be used.
func (o *options) validate() error {
	if o.db == "" {
		return fmt.Errorf("--db is empty: name a file, or %s to keep nothing", inMemory)
	}
	if _, err := o.address(); err != nil {
		return err
	}
	if _, err := o.level(); err != nil {
		return err
	}
	if err := validPort("--port", o.port); err != nil {
		return err
	}
	if err := validPort("--live-port", o.livePort); err != nil {
		return err
	}
	return validPort("--ui-port", o.uiPort)
}

// address is --ip parsed. The server binds to an address, not to a host name.
func (o *options) address() (netip.Addr, error) {
	ip, err := netip.ParseAddr(o.ip)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("--ip %q is not an IP address: give one such as 127.0.0.1, or 0.0.0.0 for every interface", o.ip)
	}
	return ip, nil
}

// warning says what --ip opens to others, "" when that is nothing.
func (o *options) warning() string {
	ip, err := o.address()
	if err != nil || ip.IsLoopback() {
		return ""
	}
	where := "on " + ip.String()
	if ip.IsUnspecified() {
		where = "on every interface of this machine"
	}
	return fmt.Sprintf("devserver: warning: it listens %s, without TLS or authentication: whoever reaches it can start, "+
		"change and end runs, answer questions and read everything", where)
}

// level is --log-level parsed.
func (o *options) level() (zapcore.Level, error) {
	level, err := zapcore.ParseLevel(o.logLevel)
	if err != nil || level > zapcore.ErrorLevel {
		return 0, fmt.Errorf("--log-level %q is not a level: give debug, info, warn or error", o.logLevel)
	}
	return level, nil
}

func validPort(flag string, port int) error {
	if port < 0 || port > maxPort {
		return fmt.Errorf("%s %d is not a port: give 1 to %d, or 0 for a free one", flag, port, maxPort)
	}
	return nil
}

// newLogger writes to stderr, one readable line an entry. The returned level
// changes what is written while it runs.
func newLogger(level zapcore.Level) (*zap.Logger, zap.AtomicLevel) {
	atomic := zap.NewAtomicLevelAt(level)
	encoder := zap.NewDevelopmentEncoderConfig()
	encoder.EncodeTime = zapcore.TimeEncoderOfLayout(time.TimeOnly)
	encoder.CallerKey = zapcore.OmitKey
	encoder.StacktraceKey = zapcore.OmitKey
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(encoder), zapcore.Lock(os.Stderr), atomic)
	return zap.New(passing{core}), atomic
}

// passingTroubles are errors that the server reports loudly and gets over by
// itself: a database that was slow for a moment, a call while the server starts or
// stops. Nobody can do anything about them.
var passingTroubles = []string{
	"shard status unknown",
	"transport: SendHeader called multiple times",
	"context canceled",            // whoever asked has left
	"Frontend is not healthy yet", // a part of the server that began before another one, and asks again
}

// passing leaves out what says that of itself, unless everything is written.
type passing struct{ zapcore.Core }

func (p passing) With(fields []zapcore.Field) zapcore.Core { return passing{p.Core.With(fields)} }

func (p passing) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if p.Enabled(e.Level) {
		return checked.AddCore(e, p)
	}
	return checked
}

func (p passing) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if !p.Enabled(zapcore.DebugLevel) && slices.ContainsFunc(fields, passes) {
		return nil
	}
	return p.Core.Write(e, fields)
}

// passes reports whether a field is the error of a passing trouble.
func passes(f zapcore.Field) bool {
	err, ok := f.Interface.(error)
	return ok && slices.ContainsFunc(passingTroubles, func(trouble string) bool { return strings.Contains(err.Error(), trouble) })
}

func serverLogger(l *zap.Logger) log.Logger { return log.NewZapLogger(l) }
