// Package s3 keeps large values of threads in a bucket of Amazon S3, or of a server that speaks its protocol: [Open] returns the
// storage.Storage that workers and clients are given. Objects have the names of the files of a storage in a directory, so that one can be
// copied into the other as it is.
//
// Credentials come from the environment, a file, or a provider of the program's own. They are never part of an address, an error or a
// stored value, and neither is what the server says in words: it may repeat what it was sent.
package s3

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"regexp"
	"time"

	"github.com/jellydator/ttlcache/v3"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"superstep.dev/thread/storage"
)

const (
	// openWithin bounds the call by which Open sees that the bucket is there.
	openWithin = 5 * time.Second
	// renewed is how old an object may become before it is written anew when it is used again.
	renewed = 24 * time.Hour
	// epochFor is how long a process relies on the epoch of a space that it has read.
	epochFor = 5 * time.Second
	// epochObject is the name of a space's epoch, epochBytes bounds it. No object has the digest of nothing but zeros.
	epochObject, epochBytes = "/0000000000000000000000000000000000000000000000000000000000000000", 64
	// thereFor is how long an object that was seen or written counts as there, and thereMost how many such objects a process
	// remembers: a large state that changes a little asks for its new pieces alone.
	thereFor, thereMost = 10 * time.Minute, 100_000
)

// bucket are storage.Objects below a prefix of a bucket: PREFIX/ab/SPACE/OBJECT. What a process has seen in a space it takes for there as
// long as the epoch of the space is the same: an object of its own, which goes first when the space is emptied.
type bucket struct {
	core         *minio.Core
	name, prefix string
	where        string
	there        *ttlcache.Cache[string, struct{}] // by epoch and name
	epochs       *ttlcache.Cache[string, string]   // by space
}

// Open returns a storage in a bucket, which must be there: the server is tried once, within five seconds, and the bucket keeps a small object
// superstep-trial for that. The credentials must allow to list the bucket, and to read and write its objects.
//
// Errors: what is wrong with cfg; a *storage.Error of the kind storage.ErrUnavailable when the server does not answer, refuses, has no
// such bucket, or keeps something else than it is given.
func Open(ctx context.Context, cfg Config, opts storage.Options) (*storage.Storage, error) {
	b, err := newBucket(cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	there, err := b.core.BucketExists(ctx, b.name)
	if err == nil && !there {
		err = errors.New("there is no such bucket")
	}
	if err == nil {
		err = b.try(ctx)
	}
	if err != nil {
		return nil, &storage.Error{Kind: storage.ErrUnavailable, Where: b.where, Cause: told(err)}
	}
	return storage.New(b, opts), nil
}

func newBucket(cfg Config) (*bucket, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	endpoint, secure, err := cfg.endpoint()
	if err != nil {
		return nil, err
	}
	creds := cfg.Credentials
	if creds == nil {
		creds = credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &fileCredentials{}})
		if found, err := creds.GetWithContext(nil); err != nil || found.AccessKeyID == "" {
			return nil, errors.New("there are no credentials for the bucket: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a file by AWS_SHARED_CREDENTIALS_FILE")
		}
	}
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, fmt.Errorf("the bucket's transport: %w", err)
	}
	core, err := minio.NewCore(endpoint, &minio.Options{
		Creds: creds, Secure: secure, Transport: transport,
		Region:     cmp.Or(cfg.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), defaultRegion),
		MaxRetries: 1, // the storage repeats calls
	})
	if err != nil {
		return nil, fmt.Errorf("the bucket's endpoint: %w", err)
	}
	return &bucket{core: core, name: cfg.Bucket, prefix: cfg.Prefix, where: cfg.where(endpoint),
		there: ttlcache.New(ttlcache.WithTTL[string, struct{}](thereFor), ttlcache.WithCapacity[string, struct{}](thereMost),
			ttlcache.WithDisableTouchOnHit[string, struct{}]()),
		epochs: ttlcache.New(ttlcache.WithTTL[string, string](epochFor), ttlcache.WithCapacity[string, string](thereMost),
			ttlcache.WithDisableTouchOnHit[string, string]())}, nil
}

// Where implements storage.Objects.
func (b *bucket) Where() string { return b.where }

func (b *bucket) path(name string) string { return path.Join(b.prefix, name[:2], name) }

// Has implements storage.Objects. An object that is old, empty, or not described as S3 describes objects counts as none: it is
// written anew.
func (b *bucket) Has(ctx context.Context, name string) (bool, error) {
	epoch, err := b.epoch(ctx, name)
	if err != nil {
		return false, err
	}
	if b.there.Get(epoch+name) != nil {
		return true, nil
	}
	info, err := b.core.StatObject(ctx, b.name, b.path(name), minio.StatObjectOptions{})
	switch {
	case minio.ToErrorResponse(err).Code == minio.NoSuchKey:
		return false, nil
	case err != nil:
		return false, told(err)
	case info.Size == 0 || info.ETag == "" || time.Since(info.LastModified) > renewed:
		return false, nil
	}
	b.there.Set(epoch+name, struct{}{}, ttlcache.DefaultTTL)
	return true, nil
}

// Put implements storage.Objects.
func (b *bucket) Put(ctx context.Context, name string, object []byte) error {
	epoch, err := b.epoch(ctx, name)
	if err == nil {
		err = b.put(ctx, name, object)
	}
	if err == nil {
		b.there.Set(epoch+name, struct{}{}, ttlcache.DefaultTTL)
	}
	return err
}

func (b *bucket) put(ctx context.Context, name string, object []byte) error {
	return b.putAt(ctx, b.path(name), object)
}

func (b *bucket) putAt(ctx context.Context, at string, object []byte) error {
	info, err := b.core.PutObject(ctx, b.name, at, bytes.NewReader(object), int64(len(object)), "", "",
		minio.PutObjectOptions{ContentType: "application/octet-stream"})
	if err != nil {
		return told(err)
	}
	if info.ETag == "" {
		return errNoS3
	}
	return nil
}

// Get implements storage.Objects.
func (b *bucket) Get(ctx context.Context, name string) ([]byte, error) {
	return b.getAt(ctx, b.path(name))
}

func (b *bucket) getAt(ctx context.Context, at string) ([]byte, error) {
	body, _, _, err := b.core.GetObject(ctx, b.name, at, minio.GetObjectOptions{})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil, b.missing(ctx)
	}
	if err != nil {
		return nil, told(err)
	}
	defer body.Close()
	object, err := io.ReadAll(io.LimitReader(body, storage.MaxObjectBytes+1))
	if len(object) > storage.MaxObjectBytes {
		return object[:storage.MaxObjectBytes], nil // its digest will tell
	}
	if err != nil {
		return nil, told(err)
	}
	return object, nil
}

// missing is the error for an object that is not there: an fs.ErrNotExist if the bucket is. Whatever else answers "not found" to
// everything is not the bucket.
func (b *bucket) missing(ctx context.Context) error {
	there, err := b.core.BucketExists(ctx, b.name)
	switch {
	case err != nil:
		return told(err)
	case !there:
		return errors.New("there is no such bucket")
	}
	return fs.ErrNotExist
}

// errNoS3 is an answer without what S3 says of an object.
var errNoS3 = errors.New("what answers is no S3 server: check the endpoint")

// errorCode is what S3 calls an error.
var errorCode = regexp.MustCompile(`^[A-Za-z0-9.]{1,64}$`)

// told is an error of a call in words of our own: what a server says may be anything.
func told(err error) error {
	answer := minio.ErrorResponse{}
	if !errors.As(err, &answer) {
		return err
	}
	if answer.StatusCode == 0 {
		return errNoS3
	}
	text := fmt.Sprintf("the server answers %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	if errorCode.MatchString(answer.Code) {
		text += " (" + answer.Code + ")"
	}
	switch answer.StatusCode {
	case http.StatusForbidden, http.StatusUnauthorized:
		text += ": check the credentials and what they allow"
	case http.StatusBadRequest, http.StatusMovedPermanently:
		text += ": check the endpoint and the region"
	}
	return errors.New(text)
}
