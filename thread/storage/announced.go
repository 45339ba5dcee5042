package storage

import (
	"context"

	"go.temporal.io/sdk/client"

	"superstep.dev/internal/announced"
)

// announcedKey is the entry of a namespace's data that says where large values lie.
const announcedKey = "superstep.storage"

// Announced returns the storage that a namespace names, nil when it names none. The project's devserver names the directory beside its
// database file. Commands and workers of package cli ask a server of their machine; other programs that share threads with these call this
// once, and give what it returns to ClientConfig.Storage and WorkerConfig.Storage.
//
// Errors: an [Error] of the kind ErrUnavailable when this process does not reach the directory, as on another machine, where a directory in
// the same place is another one; what the server says when it cannot be asked. A namespace that is not there, or that may not be asked about,
// names none.
func Announced(ctx context.Context, c client.Client, namespace string, opts Options) (*Storage, error) {
	dir, err := announced.Folder(ctx, c, namespace, announcedKey)
	switch {
	case dir == "":
		return nil, err
	case err != nil:
		return nil, &Error{Kind: ErrUnavailable, Where: dir, Cause: err}
	}
	return Files(dir, opts)
}
