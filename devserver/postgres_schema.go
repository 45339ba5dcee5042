package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jmoiron/sqlx"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql"
	v12 "go.temporal.io/server/schema/postgresql/v12"
	"go.temporal.io/server/tools/common/schema"
	"go.temporal.io/server/tools/sql"
)

// createDatabase creates a database unless it is there.
func (s *postgresStore) createDatabase(ctx context.Context, name string) error {
	conn, err := pgx.ConnectConfig(ctx, inDatabase(s.at, name))
	if err == nil {
		err = requireVersion(ctx, conn)
		return errors.Join(err, conn.Close(ctx))
	}
	if !hasCode(err, codeNoSuchDatabase) {
		return err
	}
	// The one that every server has, for those who want to create others.
	if conn, err = pgx.ConnectConfig(ctx, inDatabase(s.at, "postgres")); err != nil {
		return fmt.Errorf("database %s does not exist, and there is no database postgres from which to create it: %w", name, err)
	}
	defer func() { _ = conn.Close(ctx) }() // what it did is done
	if err := requireVersion(ctx, conn); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+" ENCODING 'UTF8' TEMPLATE template0")
	// Another devserver may have been faster, or may have created the database at the same moment: the index of names refuses then.
	if err != nil && !hasCode(err, codeDuplicateDatabase) && !hasCode(err, codeUniqueViolation) {
		return fmt.Errorf("create database %s (an administrator can: CREATE DATABASE %s OWNER %s): %w",
			name, pgx.Identifier{name}.Sanitize(), pgx.Identifier{s.at.User}.Sanitize(), err)
	}
	return nil
}

func requireVersion(ctx context.Context, conn *pgx.Conn) error {
	var version int
	if err := conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int / 10000").Scan(&version); err != nil {
		return fmt.Errorf("ask PostgreSQL for its version: %w", err)
	}
	if version < minPostgres {
		return fmt.Errorf("PostgreSQL %d is too old: the Temporal server needs %d or later", version, minPostgres)
	}
	return nil
}

// part is one of the two databases, with the schema of the server that belongs in it.
type part struct {
	at      *pgx.ConnConfig
	schema  string // its name among those that the server's packages hold
	version string // the one that this version of the server needs
}

func (s *postgresStore) parts() []part {
	return []part{
		{s.at, "postgresql/v12/temporal", v12.Version},
		{s.visibility(), "postgresql/v12/visibility", v12.VisibilityVersion},
	}
}

// layOut brings a database to the server's schema: a new one in a single
// transaction, so that a start that is killed leaves it empty; an older one by the
// server's own migrations, which can be repeated. One that is newer is left as it
// is: the server's schema only ever grows.
func (p part) layOut(ctx context.Context) error {
	empty, err := p.empty(ctx)
	if err != nil {
		return err
	}
	if empty {
		err = p.create()
	} else {
		err = p.upgrade()
	}
	if err != nil {
		return fmt.Errorf("set up database %s: %w", p.at.Database, err)
	}
	return nil
}

// empty tells whether a database is new, and refuses one that holds something else.
func (p part) empty(ctx context.Context) (bool, error) {
	conn, err := pgx.ConnectConfig(ctx, p.at)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close(ctx) }() // only read
	var tables, versions int
	err = conn.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE table_name = 'schema_version')
		FROM information_schema.tables WHERE table_schema = current_schema()`).Scan(&tables, &versions)
	if err != nil {
		return false, fmt.Errorf("read the layout of database %s: %w", p.at.Database, err)
	}
	if tables > 0 && versions == 0 {
		return false, fmt.Errorf("database %s holds tables that are not a Temporal server's: name an empty database, or one that does not exist yet",
			p.at.Database)
	}
	return tables == 0, nil
}

func (p part) create() error {
	db, err := openPool(&oneTransaction{Connector: connector(p.at)}, 1)
	if err != nil {
		return err
	}
	tools, err := p.tools(db)
	if err != nil {
		return err
	}
	defer tools.Close() // rolls back what was not committed
	setup := schema.SetupConfig{SchemaName: p.schema, InitialVersion: p.version}
	if err := schema.NewSetupSchemaTask(tools, &setup, log.NewNoopLogger()).Run(); err != nil {
		return err
	}
	return tools.Exec("COMMIT")
}

func (p part) upgrade() error {
	db, err := openPool(connector(p.at), 1)
	if err != nil {
		return err
	}
	tools, err := p.tools(db)
	if err != nil {
		return err
	}
	defer tools.Close()
	return schema.NewUpdateSchemaTask(tools, &schema.UpdateConfig{SchemaName: p.schema}, log.NewNoopLogger()).Run()
}

// tools are the server's schema tools on db, which they close.
func (p part) tools(db *sqlx.DB) (*sql.Connection, error) {
	return sql.NewConnection(&config.SQL{
		PluginName: postgresql.PluginNamePGX, DatabaseName: p.at.Database,
		Connect: func(*config.SQL) (*sqlx.DB, error) { return db, nil },
	}, log.NewNoopLogger())
}
