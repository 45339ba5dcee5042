package cli

import (
	"context"

	"superstep.dev/thread/storage"
	"superstep.dev/thread/storage/s3"
)

// noStorage is the value of --storage that leaves large values in the histories, whatever the server says.
const noStorage = "none"

// openStorage opens the place of large values that flags or the environment name, nil when they name none.
func openStorage(place string) (*storage.Storage, error) {
	var s *storage.Storage
	var err error
	switch {
	case place == "", place == noStorage:
		return nil, nil
	case s3.Is(place):
		var bucket s3.Config
		if bucket, err = s3.Parse(place); err == nil {
			s, err = s3.Open(context.Background(), bucket, storage.Options{})
		}
	default:
		s, err = storage.Files(place, storage.Options{})
	}
	if err != nil {
		return nil, usagef("--storage: %w", err)
	}
	return s, nil
}
