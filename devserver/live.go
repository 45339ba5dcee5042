package main

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
)

const (
	// noLive is the value of --live that serves no live tokens.
	noLive = "none"
	// liveSuffix names the directory beside a database file.
	liveSuffix = ".live"
	// liveKey is the entry of the namespace's data that says where live tokens go: a
	// NATS URL, "" for nowhere. Programs of this machine read it once.
	liveKey = "superstep.live"
	// liveID and liveStorage are its parameters: the name that the NATS server has,
	// by which a program sees that it reached this one, and where streams are kept.
	liveID, liveStorage = "id", "storage"

	liveStart   = 30 * time.Second
	liveMaxDisk = 1 << 30
	liveMaxHeap = 256 << 20
)

// liveServer carries what nodes emit while they run from workers to readers: a
// NATS server with JetStream within this process. The zero value is none.
type liveServer struct {
	server *nats.Server
	// announced is what the namespace says, "" for no server.
	announced string
	scratch   string // goes with the server
}

// startLive starts the NATS server of an address: dir is where it keeps what it
// was given, "" for nowhere but in memory. The zero address starts none.
func startLive(at netip.AddrPort, dir string, logger *zap.Logger) (s liveServer, err error) {
	if !at.IsValid() {
		return s, nil
	}
	storage := "file"
	if dir == "" {
		storage = "memory"
		// JetStream wants a directory even for what it keeps in memory.
		if dir, err = os.MkdirTemp("", "superstep-devserver-live-"); err != nil {
			return s, fmt.Errorf("make a directory for live tokens: start with --live %s to do without: %w", noLive, err)
		}
		s.scratch = dir
	}
	id, err := liveDir(dir)
	if err != nil {
		return s, errors.Join(fmt.Errorf("cannot use %s for live tokens: choose another --live, or %s: %w", dir, noLive, err), s.stop())
	}
	s.server, err = nats.NewServer(&nats.Options{
		ServerName: "superstep-" + id, Host: at.Addr().String(), Port: int(at.Port()), NoSigs: true,
		JetStream: true, StoreDir: dir, JetStreamMaxMemory: liveMaxHeap, JetStreamMaxStore: liveMaxDisk,
	})
	if err != nil {
		return s, errors.Join(fmt.Errorf("set up the NATS server of live tokens: %w", err), s.stop())
	}
	s.server.SetLoggerV2(natsLog{logger.Named("nats").Sugar()}, false, false, false)
	s.server.Start()
	if !s.server.ReadyForConnections(liveStart) || !s.server.JetStreamEnabled() {
		return s, errors.Join(fmt.Errorf("the NATS server of live tokens does not serve from %s: choose another --live, or %s, and run with "+
			"--log-level info to see why", dir, noLive), s.stop())
	}
	s.announced = (&url.URL{Scheme: "nats", Host: at.String(),
		RawQuery: url.Values{liveID: {s.server.Name()}, liveStorage: {storage}}.Encode()}).String()
	return s, nil
}

// liveDir makes the directory when there is none, and returns its id.
func liveDir(dir string) (id string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return idOf(dir)
}

// stop ends the server. What was on its way to readers comes to them with the
// results of the nodes.
func (s liveServer) stop() error {
	if s.server != nil {
		s.server.Shutdown()
		s.server.WaitForShutdown()
	}
	if s.scratch == "" {
		return nil
	}
	return os.RemoveAll(s.scratch)
}

// livePath is where a database file's live tokens are kept.
func livePath(db string) string { return filepath.Clean(db) + liveSuffix }

// natsLog brings what the NATS server logs to the log of this process. What it
// notes about its own state is for who looks for it.
type natsLog struct{ to *zap.SugaredLogger }

func (l natsLog) Noticef(format string, v ...any) { l.to.Debugf(format, v...) }
func (l natsLog) Warnf(format string, v ...any)   { l.to.Warnf(format, v...) }
func (l natsLog) Errorf(format string, v ...any)  { l.to.Errorf(format, v...) }
func (l natsLog) Fatalf(format string, v ...any)  { l.to.Errorf(format, v...) }
func (l natsLog) Debugf(string, ...any)           {}
func (l natsLog) Tracef(string, ...any)           {}
