package storage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jellydator/ttlcache/v3"
	"github.com/klauspost/compress/zstd"
)

// Objects are where a [Storage] keeps what it stores, each object with at most [MaxObjectBytes]. A name is SPACE/OBJECT: 32 hex digits,
// of a thread, and 64. An implementation is safe for concurrent use by any number of processes.
type Objects interface {
	// Where names the place, for people: no credentials.
	Where() string
	// Has reports whether an object is there, and will be for as long as one that is put now.
	Has(ctx context.Context, name string) (bool, error)
	// Put stores an object. When it returns nil the object outlives a loss of power, and whoever gets it gets all of it.
	Put(ctx context.Context, name string, object []byte) error
	// Get returns an object. The error for one that is not there is an fs.ErrNotExist.
	Get(ctx context.Context, name string) ([]byte, error)
	// List returns the objects of a space, none for one that is not there.
	List(ctx context.Context, space string) ([]Object, error)
	// Empty removes the objects of a space, and tells of each that it has removed. When it returns nil none is left, and no process'
	// Has says of one that is gone that it is there.
	Empty(ctx context.Context, space string, removed func(Object)) error
}

// Object is one object of a [Storage].
type Object struct {
	Name  string
	Bytes int64
}

// spaceDigits is how many hex digits name a space.
const spaceDigits = 32

// MaxObjectBytes bounds an object.
const MaxObjectBytes = 4 << 20

const (
	// tryFor is how long a call is repeated while the storage does not take it: less than a workflow task has, so that the server
	// hears why the task failed. Then the server repeats the task, as long as it takes.
	tryFor = 5 * time.Second
	// tryReading is the same for reading: less than an activity has until its first heartbeat.
	tryReading = 1500 * time.Millisecond
	tryFirst   = 50 * time.Millisecond
)

// The first byte of an object says how the rest is written.
const (
	asItIs     = 0
	compressed = 1
)

// objects are Objects as a Storage uses them: repeated, compressed, verified, and kept in memory once they were read.
type objects struct {
	Objects
	kept *ttlcache.Cache[string, []byte]
	most int
	// versions are the values that were stored or read last.
	versions *versions
	// swept is when what is too old was last forgotten, in nanoseconds since 1970.
	swept atomic.Int64
}

func newObjects(o Objects, cacheBytes int) *objects {
	return &objects{Objects: o, most: cacheBytes, versions: newVersions(cacheBytes), kept: ttlcache.New(ttlcache.WithTTL[string, []byte](keptFor), ttlcache.WithDisableTouchOnHit[string, []byte](), ttlcache.WithMaxCost(uint64(cacheBytes),
		func(item ttlcache.CostItem[string, []byte]) uint64 { return uint64(len(item.Value)) }))}
}

// zip and unzip are shared: both are safe for concurrent use.
var zip, unzip = sync.OnceValue(func() *zstd.Encoder {
	// The fastest level alone would leave text as it is that repeats nothing.
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithAllLitEntropyCompression(true), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(err) // its options are constants
	}
	return z
}), sync.OnceValue(func() *zstd.Decoder {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(MaxObjectBytes))
	if err != nil {
		panic(err)
	}
	return z
})

// put stores content under its digest in a space, unless it is there, and returns the digest.
func (o *objects) put(ctx context.Context, space string, content []byte) (sha [sha256.Size]byte, err error) {
	sha = sha256.Sum256(content)
	name := space + "/" + hex.EncodeToString(sha[:])
	there, err := retry(ctx, o, tryFor, func(ctx context.Context) (bool, error) { return o.Has(ctx, name) })
	if err != nil || there {
		return sha, err
	}
	object := zip().EncodeAll(content, append(make([]byte, 0, len(content)/2), compressed))
	if len(object) > len(content) {
		object = append([]byte{asItIs}, content...)
	}
	_, err = retry(ctx, o, tryFor, func(ctx context.Context) (bool, error) { return true, o.Put(ctx, name, object) })
	if err == nil {
		o.keep(name, bytes.Clone(content)) // most of what is stored is read again, by the next run of the thread
	}
	return sha, err
}

// get returns what was stored under a name. Nobody may change it.
func (o *objects) get(ctx context.Context, name string) ([]byte, error) {
	if item := o.kept.Get(name); item != nil {
		return item.Value(), nil
	}
	object, err := retry(ctx, o, tryReading, func(ctx context.Context) ([]byte, error) { return o.Get(ctx, name) })
	if err != nil {
		return nil, o.explain(name, err)
	}
	content, err := o.verified(name, object)
	if err == nil {
		o.keep(name, content)
	}
	return content, err
}

// verified is what an object holds, if it is what was stored under its name.
func (o *objects) verified(name string, object []byte) ([]byte, error) {
	content, err := open(object)
	if sum := sha256.Sum256(content); err == nil && hex.EncodeToString(sum[:]) != name[spaceDigits+1:] {
		err = fmt.Errorf("its %d bytes have the digest %x", len(content), sum)
	}
	if err != nil {
		return nil, &Error{Kind: ErrDamaged, Object: name, Where: o.Where(), Cause: err}
	}
	return content, nil
}

func (o *objects) keep(name string, content []byte) {
	if len(content) <= o.most {
		o.kept.Set(name, content, ttlcache.DefaultTTL)
		if now, swept := time.Now().UnixNano(), o.swept.Load(); now-swept > int64(keptFor/4) && o.swept.CompareAndSwap(swept, now) {
			o.kept.DeleteExpired() // nobody else looks at what is never asked for again
			o.versions.known.DeleteExpired()
		}
	}
}

// open reads an object.
func open(object []byte) ([]byte, error) {
	switch {
	case len(object) == 0:
		return nil, errors.New("it is empty")
	case object[0] == asItIs:
		return object[1:], nil
	case object[0] == compressed:
		return unzip().DecodeAll(object[1:], nil)
	}
	return nil, fmt.Errorf("it begins with %#x", object[0])
}

// errNoAnswer is why a call ends that hangs.
var errNoAnswer = fmt.Errorf("no answer within %v", tryFor)

// retry repeats a call that may succeed the next time, and gives up one that does not return. What is not there does not come by waiting.
func retry[T any](ctx context.Context, o *objects, atMost time.Duration, call func(context.Context) (T, error)) (T, error) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval = tryFirst
	calls, cancel := context.WithTimeoutCause(ctx, tryFor, errNoAnswer)
	defer cancel()
	var before error // why the try before failed: it says more than that the last one took too long
	got, err := backoff.Retry(ctx, func() (T, error) {
		got, err := call(calls)
		switch {
		case err == nil:
		case context.Cause(calls) == errNoAnswer && before != nil:
			err = backoff.Permanent(fmt.Errorf("%w; before that: %w", errNoAnswer, before))
		case context.Cause(calls) == errNoAnswer:
			err = backoff.Permanent(errNoAnswer)
		case errors.Is(err, fs.ErrNotExist):
			err = backoff.Permanent(err)
		default:
			before = err
		}
		return got, err
	}, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(atMost))
	return got, o.explain("", err)
}

// explain says what an error of the storage comes to.
func (o *objects) explain(name string, err error) error {
	var told *Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist) && name != "":
		return &Error{Kind: ErrMissing, Object: name, Where: o.Where()}
	case errors.Is(err, fs.ErrNotExist), errors.As(err, &told):
		return err
	}
	return &Error{Kind: ErrUnavailable, Object: name, Where: o.Where(), Cause: err}
}

// names are what objects are called.
var names = regexp.MustCompile(`^[0-9a-f]{32}/[0-9a-f]{64}$`)
