#!/bin/sh
# Brings Temporal's two databases to the schema of this version, and ends. Safe
# to run again: what exists is left alone, and after an upgrade of the images it
# applies only the missing steps. The server starts once this has succeeded.
set -eu

. "${SUPERSTEP_SCRIPTS:-/etc/superstep}/postgres-password.sh"

# The tool takes its connection from these, so the password is on no command line.
export SQL_PASSWORD="$postgres_password"
export SQL_PLUGIN=postgres12
: "${SQL_HOST:?is the PostgreSQL host}"
: "${SQL_PORT:?is the PostgreSQL port}"
: "${SQL_USER:?is the PostgreSQL user}"
export SQL_HOST SQL_PORT SQL_USER

schemas=${TEMPORAL_SCHEMAS:-/etc/temporal/schema/postgresql/v12}

# migrate DATABASE SCHEMA: create the database, its version table, its tables.
migrate() {
	echo "schema: $1"
	temporal-sql-tool --database "$1" create-database
	temporal-sql-tool --database "$1" setup-schema --version 0.0
	temporal-sql-tool --database "$1" update-schema --schema-dir "$schemas/$2/versioned"
}

migrate "${TEMPORAL_DATABASE:-temporal}" temporal
migrate "${TEMPORAL_VISIBILITY_DATABASE:-temporal_visibility}" visibility
echo "schema: up to date"
