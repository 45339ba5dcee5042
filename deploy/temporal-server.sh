#!/bin/sh
# Starts the Temporal server with the password from the secret file. The image
# takes it from the environment only; here it enters that of this one process.
set -eu

. "${SUPERSTEP_SCRIPTS:-/etc/superstep}/postgres-password.sh"

export POSTGRES_PWD="$postgres_password"
exec /etc/temporal/entrypoint.sh
