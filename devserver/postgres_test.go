package main_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql"
	v12 "go.temporal.io/server/schema/postgresql/v12"
	"go.temporal.io/server/tools/common/schema"
	"go.temporal.io/server/tools/sql"
)

// What SQLite is set up with, PostgreSQL is too; setting up twice changes nothing, and
// the password stays out of everything that is printed.
func TestPostgresIsSetUp(t *testing.T) {
	t.Parallel()
	c, name := postgres(t), newDatabase()
	require.NoError(t, c.exec("postgres", "ALTER ROLE guarded CREATEDB"))
	dsn := c.dsn("guarded:"+secret, name)
	for range 2 {
		s := ready(t, launchIn(t, []string{"SUPERSTEP_POSTGRES=" + dsn}, "--port", "0", "--headless"))
		require.Contains(t, s.line, fmt.Sprintf("db postgres 127.0.0.1:%d/%s", c.port, name))
		requireNamespace(t, dial(t, s.address))
		require.Zero(t, s.stop(t))
		require.Empty(t, s.stderr.String(), "a start and a stop leave the terminal clean")
		require.NotContains(t, s.line, secret)
	}
	require.Equal(t, v12.Version, c.version(t, name))
	require.Equal(t, v12.VisibilityVersion, c.version(t, name+"_visibility"))
	require.Equal(t, 1, c.count(t, name, "schema_update_history"), "set up once")
	require.Equal(t, 2, c.count(t, name, "namespaces"), "the system's and ours")
}

// A flag names the database before the environment does.
func TestFileBeforeEnvironment(t *testing.T) {
	t.Parallel()
	s := ready(t, launchIn(t, []string{"SUPERSTEP_POSTGRES=postgres://nobody@127.0.0.1:1/none"}, "--db", ":memory:", "--port", "0", "--headless"))
	require.Contains(t, s.line, "db :memory:")
	require.Zero(t, s.stop(t))
}

// A database that an older server laid out is brought to this one's schema.
func TestPostgresIsUpgraded(t *testing.T) {
	t.Parallel()
	c, name := postgres(t), newDatabase()
	c.layOut(t, name, "postgresql/v12/temporal", "1.17")
	c.layOut(t, name+"_visibility", "postgresql/v12/visibility", "1.9")
	require.Equal(t, "1.17", c.version(t, name))
	s := startOn(t, []string{"--postgres", c.dsn("me", name)})
	require.Equal(t, v12.Version, c.version(t, name))
	require.Equal(t, v12.VisibilityVersion, c.version(t, name+"_visibility"))
	requireNamespace(t, dial(t, s.address))
	require.Zero(t, s.stop(t))
}

// A first start that is killed while it sets up leaves nothing that the next could not
// take up. Each try kills at another moment of the one or two seconds that it takes.
func TestPostgresSetUpIsKilled(t *testing.T) {
	t.Parallel()
	c, name := postgres(t), newDatabase()
	for i := range 8 {
		p := launch(t, "--postgres", c.dsn("me", name), "--port", "0", "--headless")
		select {
		case <-p.line: // it was faster
		case <-time.After(time.Duration(i*i) * 20 * time.Millisecond):
		}
		p.kill(t)
	}
	s := startOn(t, []string{"--postgres", c.dsn("me", name)})
	requireNamespace(t, dial(t, s.address))
	require.Zero(t, s.stop(t))
}

func TestRefusesSecondOnOnePostgresDatabase(t *testing.T) {
	t.Parallel()
	dsn := postgres(t).dsn("me", newDatabase())
	first := startOn(t, []string{"--postgres", dsn})
	requireRefused(t, launch(t, "--postgres", dsn, "--port", "0", "--headless"), "in use by another devserver")
	require.Zero(t, first.stop(t))
	require.Zero(t, startOn(t, []string{"--postgres", dsn}).stop(t))
}

func TestRefusesUnusablePostgres(t *testing.T) {
	t.Parallel()
	c := postgres(t)
	require.NoError(t, c.exec("postgres", "CREATE ROLE visitor LOGIN"))
	foreign, old := newDatabase(), newDatabase()
	require.NoError(t, c.exec("postgres", "CREATE DATABASE "+foreign))
	require.NoError(t, c.exec(foreign, "CREATE TABLE recipes (name TEXT)"))
	// One that says that it is version 11.
	require.NoError(t, c.exec("postgres", "CREATE DATABASE "+old))
	require.NoError(t, c.exec(old, "CREATE SCHEMA past"))
	require.NoError(t, c.exec(old, "CREATE FUNCTION past.current_setting(text) RETURNS text LANGUAGE sql AS $$SELECT '110022'$$"))
	require.NoError(t, c.exec("postgres", "ALTER DATABASE "+old+" SET search_path = past, pg_catalog"))

	for name, test := range map[string]struct{ dsn, hint string }{
		"nobody there":     {"postgres://me:" + secret + "@127.0.0.1:1/runs", "start PostgreSQL"},
		"wrong password":   {c.dsn("guarded:not-"+secret, "postgres"), "correct user and password"},
		"no such role":     {c.dsn("stranger:"+secret, "postgres"), "correct user and password"},
		"may not create":   {c.dsn("visitor", newDatabase()), "let an administrator create"},
		"of someone else":  {c.dsn("me", foreign), "tables that are not a Temporal server's"},
		"too old":          {c.dsn("me", old), "PostgreSQL 11 is too old"},
		"no URL":           {"postgres://me:" + secret + "%zz@127.0.0.1/runs", "cannot be read"},
		"part not escaped": {"postgres://me:" + secret + "/#@127.0.0.1/runs", "cannot be read"},
		"no words":         {"password=" + secret + " host", "cannot be read"},
		"name too long":    {c.dsn("me", fmt.Sprintf("%060d", 1)), "is too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := launch(t, "--postgres", test.dsn, "--port", "0", "--headless")
			requireRefused(t, p, test.hint)
			require.NotContains(t, p.stderr.String(), secret)
		})
	}
}

// layOut makes a database as an older server's tools did.
func (c *cluster) layOut(t *testing.T, database, name, version string) {
	t.Helper()
	require.NoError(t, c.exec("postgres", "CREATE DATABASE "+database))
	tools, err := sql.NewConnection(&config.SQL{
		PluginName: postgresql.PluginName, ConnectAddr: fmt.Sprintf("127.0.0.1:%d", c.port), User: "me", DatabaseName: database,
	}, log.NewNoopLogger())
	require.NoError(t, err)
	defer tools.Close()
	require.NoError(t, schema.NewSetupSchemaTask(tools, &schema.SetupConfig{InitialVersion: "0.0"}, log.NewNoopLogger()).Run())
	update := schema.UpdateConfig{SchemaName: name, TargetVersion: version}
	require.NoError(t, schema.NewUpdateSchemaTask(tools, &update, log.NewNoopLogger()).Run())
}

func (c *cluster) version(t *testing.T, database string) (version string) {
	t.Helper()
	c.read(t, database, "SELECT curr_version FROM schema_version", &version)
	return version
}

func (c *cluster) count(t *testing.T, database, table string) (rows int) {
	t.Helper()
	c.read(t, database, "SELECT count(*) FROM "+table, &rows)
	return rows
}

func (c *cluster) read(t *testing.T, database, query string, into any) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, c.dsn("me", database))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(ctx)) }()
	require.NoError(t, conn.QueryRow(ctx, query).Scan(into))
}
