package s3

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"path"
	"time"

	"github.com/minio/minio-go/v7"

	"superstep.dev/thread/storage"
)

// epoch is the epoch of the space of an object, which is given one if it has none. It was read epochFor ago at most.
func (b *bucket) epoch(ctx context.Context, name string) (string, error) {
	space := path.Dir(name)
	if known := b.epochs.Get(space); known != nil {
		return known.Value(), nil
	}
	read := time.Now()
	text, err := b.Get(ctx, space+epochObject)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (len(text) == 0 || len(text) > epochBytes) {
		text = []byte(rand.Text())
		err = b.put(ctx, space+epochObject, text)
	}
	if err != nil {
		return "", err
	}
	b.epochs.Set(space, string(text), max(epochFor-time.Since(read), time.Nanosecond)) // 0 would be the default
	return string(text), nil
}

// List implements storage.Objects.
func (b *bucket) List(ctx context.Context, space string) ([]storage.Object, error) {
	all, _, err := b.list(ctx, space)
	return all, err
}

// list also says whether the space has an epoch.
func (b *bucket) list(ctx context.Context, space string) (all []storage.Object, epoch bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing
	prefix := path.Join(b.prefix, space[:2], space) + "/"
	for o := range b.core.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if o.Err != nil {
			return nil, false, told(o.Err)
		}
		name := space + "/" + path.Base(o.Key)
		if name == space+epochObject {
			epoch = true
			continue
		}
		all = append(all, storage.Object{Name: name, Bytes: o.Size})
	}
	return all, epoch, nil
}

// Empty implements storage.Objects. Once the epoch is gone it waits until no process relies on it.
func (b *bucket) Empty(ctx context.Context, space string, removed func(storage.Object)) error {
	all, epoch, err := b.list(ctx, space)
	if err != nil || len(all) == 0 && !epoch {
		return err
	}
	if err := b.remove(ctx, space+epochObject); err != nil {
		return err
	}
	b.epochs.Delete(space)
	select {
	case <-time.After(epochFor):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if all, _, err = b.list(ctx, space); err != nil {
		return err
	}
	for _, o := range all {
		if err := b.remove(ctx, o.Name); err != nil {
			return err
		}
		removed(o)
	}
	return b.remove(ctx, space+epochObject) // another process may have made one to look for an object
}

func (b *bucket) remove(ctx context.Context, name string) error {
	err := b.core.RemoveObject(ctx, b.name, b.path(name), minio.RemoveObjectOptions{})
	if err != nil && minio.ToErrorResponse(err).Code != minio.NoSuchKey {
		return told(err)
	}
	return nil
}
