package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql"
)

const (
	postgresName           = "postgres"
	postgresVisibilityName = "postgres-visibility"

	// A server's history is in one database and what lists show is in another, as
	// in every Temporal cluster on PostgreSQL: their tables of versions have one name.
	visibilitySuffix = "_visibility"
	defaultDatabase  = "superstep"
	maxDatabaseName  = 63 // bytes; PostgreSQL cuts longer ones off without a word

	// Fixed for the life of a database. Unlike SQLite's, writers in different
	// shards do not wait for each other.
	postgresShards = 4

	// The server has four parts, and each opens so many connections to the one
	// database and to the other: 64 in all, of the 100 that PostgreSQL allows
	// unless it was told otherwise.
	mainConns, visibilityConns = 12, 4

	postgresPatience = 10 * time.Second // to connect, and until another devserver lets go
	minPostgres      = 12
)

// postgresStore is two databases of a PostgreSQL server, locked against every
// other devserver.
type postgresStore struct {
	at   *pgx.ConnConfig // how to reach the database of the histories
	lock *pgx.Conn
}

// openPostgres connects, creates the databases that are missing, lays them out or
// upgrades them, and takes the lock that keeps a second devserver away. Its
// errors never hold the DSN.
func openPostgres(ctx context.Context, dsn string) (*postgresStore, error) {
	at, err := parseDSN(dsn)
	if err != nil {
		return nil, err
	}
	s := &postgresStore{at: at}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(s.taught(err), s.close())
	}
	return s, nil
}

func (s *postgresStore) open(ctx context.Context) error {
	for _, database := range []string{s.at.Database, s.visibility().Database} {
		if err := s.createDatabase(ctx, database); err != nil {
			return err
		}
	}
	if err := s.takeLock(ctx); err != nil {
		return err
	}
	for _, part := range s.parts() {
		if err := part.layOut(ctx); err != nil {
			return err
		}
	}
	return createNamespace(s.config(s.at, mainConns))
}

// parseDSN reads a DSN, as a URL or as words, with PostgreSQL's environment
// variables and password file for what it leaves out. The error quotes nothing of
// it: where it cannot be read nobody knows which part is the password.
func parseDSN(dsn string) (*pgx.ConnConfig, error) {
	at, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("the DSN of --postgres cannot be read: write postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=MODE, " +
			"with special characters of the password as %XX, and name only files that exist")
	}
	if at.Database == "" {
		at.Database = defaultDatabase
	}
	if len(at.Database+visibilitySuffix) > maxDatabaseName {
		return nil, fmt.Errorf("database name %q is too long: %d bytes at most, so that one ending in %s can stand beside it",
			at.Database, maxDatabaseName-len(visibilitySuffix), visibilitySuffix)
	}
	if at.ConnectTimeout == 0 {
		at.ConnectTimeout = postgresPatience
	}
	at.RuntimeParams["application_name"] = "superstep-devserver"
	return at, nil
}

// visibility is how to reach the database of what lists show.
func (s *postgresStore) visibility() *pgx.ConnConfig {
	return inDatabase(s.at, s.at.Database+visibilitySuffix)
}

func inDatabase(at *pgx.ConnConfig, name string) *pgx.ConnConfig {
	other := at.Copy()
	other.Database = name
	return other
}

// lockKey is what devservers of one database agree on.
const lockKey = 0x5355504552 // "SUPER"

// takeLock keeps other devservers away for as long as its connection lasts. Should
// PostgreSQL restart meanwhile, the server's own fencing of shards remains.
func (s *postgresStore) takeLock(ctx context.Context) (err error) {
	if s.lock, err = pgx.ConnectConfig(ctx, s.at); err != nil {
		return err
	}
	if _, err := s.lock.Exec(ctx, "SET lock_timeout = "+strconv.FormatInt(postgresPatience.Milliseconds(), 10)); err != nil {
		return err
	}
	_, err = s.lock.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(lockKey))
	if hasCode(err, codeLockNotAvailable) {
		return fmt.Errorf("%s is in use by another devserver: stop that one, or name another database", s.name())
	}
	return err
}

// name is host, port and database: neither user nor password.
func (s *postgresStore) name() string {
	port := strconv.Itoa(int(s.at.Port))
	if strings.HasPrefix(s.at.Host, "/") { // a directory of sockets
		return "postgres " + s.at.Host + ":" + port + "/" + s.at.Database
	}
	return "postgres " + net.JoinHostPort(s.at.Host, port) + "/" + s.at.Database
}

func (s *postgresStore) persistence() config.Persistence {
	return config.Persistence{
		DefaultStore: postgresName, VisibilityStore: postgresVisibilityName, NumHistoryShards: postgresShards,
		DataStores: map[string]config.DataStore{
			postgresName:           {SQL: s.config(s.at, mainConns)},
			postgresVisibilityName: {SQL: s.config(s.visibility(), visibilityConns)},
		},
	}
}

// config is how the server opens one of the databases.
func (s *postgresStore) config(at *pgx.ConnConfig, conns int) *config.SQL {
	return &config.SQL{
		PluginName: postgresql.PluginNamePGX, DatabaseName: at.Database, Connect: connectTo(at),
		MaxConns: conns, MaxIdleConns: conns,
	}
}

func (s *postgresStore) close() error {
	if s.lock == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), postgresPatience)
	defer cancel()
	_ = s.lock.Close(ctx) // if PostgreSQL is gone, so is the lock
	return nil
}
