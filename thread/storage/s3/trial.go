package s3

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
)

// trialObject is the name of an object below the prefix, by which it is found out whether the server keeps objects as they are. Its text never changes, so that
// processes that try the server at the same time do not mind each other.
const trialObject, trialText = "superstep-trial", "Superstep tries this bucket by this object: it may be removed at any time."

// errChanges is the error of a server that corrupts objects.
var errChanges = errors.New("the server keeps something else than it is given, for instance because it does not know uploads in signed chunks " +
	"(STREAMING-AWS4-HMAC-SHA256-PAYLOAD): use another server, or a newer version of it")

// try writes and reads the trial's object, unless it is there as it should be.
func (b *bucket) try(ctx context.Context) error {
	at := path.Join(b.prefix, trialObject)
	kept, err := b.getAt(ctx, at)
	if err == nil && bytes.Equal(kept, []byte(trialText)) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := b.putAt(ctx, at, []byte(trialText)); err != nil {
		return err
	}
	if kept, err = b.getAt(ctx, at); err == nil && !bytes.Equal(kept, []byte(trialText)) {
		err = errChanges
	}
	return err
}
