package main

import (
	"context"

	"go.temporal.io/server/common/config"
)

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
