package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

const (
	// DefaultThreshold is from how many bytes on a value goes by reference, unless Options say otherwise: 16 KiB.
	DefaultThreshold = 16 << 10
	// DefaultCacheBytes is what a process keeps in memory of the objects that it stored and read, and once more of whole values, unless
	// Options say otherwise: 64 MiB.
	DefaultCacheBytes = 64 << 20
)

// Options shape a [Storage]. The zero value has the defaults.
type Options struct {
	// Threshold is the size in bytes from which a payload goes by reference; 0 or less means [DefaultThreshold]. A reference takes 300 to
	// 600 bytes itself.
	Threshold int
	// CacheBytes is what is kept in memory of objects, and once more of values that others may go on from; 0 or less means
	// [DefaultCacheBytes].
	CacheBytes int
}

// Storage keeps large values outside of histories. Give the same to all workers and clients of a namespace, as WorkerConfig.Storage and
// ClientConfig.Storage: what was stored is needed wherever the thread is read. It is safe for concurrent use, and one serves any number of
// clients and workers of a process.
//
// The values of each thread have a space of their own ([SpaceOf]), with which they are removed when the thread is erased
// ([Storage.Empty]). Nothing else is ever removed: a history refers to what it needs as long as the server keeps it. What is used again
// after a day counts as stored anew, so whoever removes what is older than the longest run and the namespace's retention
// together removes nothing that is needed.
type Storage struct {
	objects   *objects
	threshold int
}

// New returns a storage that keeps its values in o.
func New(o Objects, opts Options) *Storage {
	return &Storage{objects: newObjects(o, cmp.Or(max(0, opts.CacheBytes), DefaultCacheBytes)), threshold: cmp.Or(max(0, opts.Threshold), DefaultThreshold)}
}

// Where names the place of the storage, for people.
func (s *Storage) Where() string { return s.objects.Where() }

// List returns what lies in a space, in no order.
//
// Errors: an [Error] of the kind ErrUnavailable.
func (s *Storage) List(ctx context.Context, space string) ([]Object, error) {
	all, err := retry(ctx, s.objects, tryFor, func(ctx context.Context) ([]Object, error) { return s.objects.List(ctx, space) })
	if err != nil {
		return nil, fmt.Errorf("list the stored values: %w", err)
	}
	return all, nil
}

// Empty removes all that lies in a space, and tells of each object that it has removed. When it returns nil nothing lies there, and no
// process that shares the storage takes for stored there what was removed. It may be called again after any error. Memory of other
// processes has removed values for an hour at most.
//
// Errors: an [Error] of the kind ErrUnavailable.
func (s *Storage) Empty(ctx context.Context, space string, removed func(Object)) error {
	s.objects.versions.forget(space)
	for _, name := range s.objects.kept.Keys() {
		if name[:spaceDigits] == space {
			s.objects.kept.Delete(name)
		}
	}
	if err := s.objects.Empty(ctx, space, removed); err != nil {
		return fmt.Errorf("remove stored values: %w", s.objects.explain("", err))
	}
	return nil
}

// Raw returns an object as it is stored, verified. The errors are those of reading a value.
func (s *Storage) Raw(ctx context.Context, name string) ([]byte, error) {
	if !names.MatchString(name) {
		return nil, fmt.Errorf("%q names no object", name)
	}
	object, err := retry(ctx, s.objects, tryFor, func(ctx context.Context) ([]byte, error) { return s.objects.Get(ctx, name) })
	if err != nil {
		return nil, s.objects.explain(name, err)
	}
	_, err = s.objects.verified(name, object)
	return object, err
}

// External is the storage as a Temporal client takes it, for Client.Options.ExternalStorage of programs that use one beside
// Superstep. The zero value for a nil Storage.
func (s *Storage) External() converter.ExternalStorage {
	if s == nil {
		return converter.ExternalStorage{}
	}
	return converter.ExternalStorage{Drivers: []converter.StorageDriver{driver{s}}, DriverSelector: driver{s}, PayloadSizeThreshold: s.threshold}
}

// driverName stands in histories. It names no place, so that what is stored can be moved from one storage to another.
const driverName = "superstep"

// driver is a Storage as Temporal's SDK uses it.
type driver struct{ *Storage }

// Name implements converter.StorageDriver.
func (driver) Name() string { return driverName }

// Type implements converter.StorageDriver.
func (driver) Type() string { return driverName }

// SelectDriver implements converter.StorageDriverSelector.
func (d driver) SelectDriver(ctx converter.StorageDriverSelectContext, p *commonpb.Payload) (converter.StorageDriver, error) {
	if ctx.Context.Value(inline{}) != nil || len(p.GetMetadata()[passes]) > 0 {
		return nil, nil
	}
	return d, nil
}

// Store implements converter.StorageDriver.
func (d driver) Store(ctx converter.StorageDriverStoreContext, payloads []*commonpb.Payload) ([]converter.StorageDriverClaim, error) {
	claims := make([]converter.StorageDriverClaim, len(payloads))
	for i, p := range payloads {
		v, err := d.objects.store(ctx.Context, targetOf(ctx), p, func(c context.Context, do func() error) error { return ctx.GetLimiter().Permit(c, p, do) })
		if err != nil {
			return nil, err
		}
		claims[i] = v.claim()
		_ = ctx.GetLimiter().Permit(over, p, nothing)
	}
	return claims, nil
}

// Retrieve implements converter.StorageDriver.
func (d driver) Retrieve(ctx converter.StorageDriverRetrieveContext, claims []converter.StorageDriverClaim) ([]*commonpb.Payload, error) {
	payloads := make([]*commonpb.Payload, len(claims))
	for i, claim := range claims {
		v, err := valueOf(claim.ClaimData)
		if err == nil {
			payloads[i], err = d.objects.load(ctx.Context, v, func(c context.Context, do func() error) error { return ctx.GetLimiter().Permit(c, claim, do) })
		}
		if err != nil {
			return nil, err
		}
		_ = ctx.GetLimiter().Permit(over, claim, nothing)
	}
	return payloads, nil
}

// over has the SDK's limiter count a value that needed no operation, as one that is in memory: it warns of drivers that ask for no permit.
// Who asks with a context that has ended does not wait for one.
var over, nothing = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}(), func() error { return nil }

// What a claim says.
const claimSpace, claimObject, claimBytes, claimForm = "space", "sha256", "bytes", "form"

func (v value) claim() converter.StorageDriverClaim {
	return converter.StorageDriverClaim{ClaimData: map[string]string{claimSpace: v.space, claimObject: v.object, claimBytes: strconv.Itoa(v.bytes), claimForm: string(v.form)}}
}

// valueOf reads a claim. Whoever can write into a history can write one, so nothing is taken from it that is not checked.
func valueOf(claim map[string]string) (value, error) {
	size, err := strconv.Atoi(claim[claimBytes])
	form := form(claim[claimForm])
	switch {
	case err != nil || size < 0 || size > MaxValueBytes:
		err = fmt.Errorf("it names a value of %q bytes", claim[claimBytes])
	case !names.MatchString(claim[claimSpace] + "/" + claim[claimObject]):
		err = errors.New("it names no object")
	case !slices.Contains(forms, form):
		err = fmt.Errorf("it names a value of the form %q", form)
	}
	if err != nil {
		return value{}, fmt.Errorf("a reference to a stored value cannot be read: %w", err)
	}
	return value{space: claim[claimSpace], object: claim[claimObject], bytes: size, form: form}, nil
}

// MaxValueBytes bounds a value that is stored.
const MaxValueBytes = 256 << 20

// form is how a value is stored.
type form string

// The forms of values. They stand in histories.
const (
	formWhole  form = "whole"  // one object
	formPieces form = "pieces" // an object with the table of its pieces
	formDelta  form = "delta"  // an object that tells it by an earlier value
)

// forms are all there are; a delta names that of its base by its place here.
var forms = []form{formWhole, formPieces, formDelta}

// value says where a value is: what a reference in a history holds.
type value struct {
	space  string // of the thread that it is of
	object string // in that space: the value, the table of its pieces, or a delta
	bytes  int    // of the payload's data
	form   form
}

// root is the name of the object that a reference names.
func (v value) root() string { return v.space + "/" + v.object }
