// Package archive reads threads that were archived: see superstep.Client.Prune. An [Archive] stands where a Temporal server and a storage
// stood, so that a superstep.Client over it shows archived threads as it showed them on the server: views, states, histories, effects,
// audits and checkpoints, the answers of jobs. Nothing is sent anywhere, and nothing can be changed.
package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"superstep.dev/internal/archive"
	"superstep.dev/job"
	"superstep.dev/thread"
	"superstep.dev/thread/storage"
)

// Archive is one file, or a directory of them. It is safe for concurrent use.
type Archive struct {
	place string
	dir   bool

	mu    sync.Mutex
	files map[string]*archive.File // by their paths, those that were opened
}

// Open opens an archive: a file, which is held against its digest, or a directory, of which files are when they are needed.
//
// Errors, each a [thread.Error]: ErrNotFound when there is nothing; ErrBadInput for a file that was cut or changed, or is no archive.
func Open(place string) (*Archive, error) {
	info, err := os.Stat(place)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &thread.Error{Kind: thread.ErrNotFound, Message: fmt.Sprintf("there is no archive %q", place)}
	}
	if err != nil {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Message: fmt.Sprintf("archive %q cannot be read", place), Cause: err}
	}
	a := &Archive{place: place, dir: info.IsDir(), files: map[string]*archive.File{}}
	if !a.dir {
		_, err = a.open(place)
	}
	return a, err
}

// Close closes the files.
func (a *Archive) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []error
	for _, path := range slices.Sorted(maps.Keys(a.files)) {
		all = append(all, a.files[path].Close())
	}
	a.files = map[string]*archive.File{}
	return errors.Join(all...)
}

// Client returns a Temporal client that is answered from the archive. Of the options, which may be those of superstep.Encoded, the
// connection is left out: give data converter and storage, [Archive.Storage], as for a server.
func (a *Archive) Client(o client.Options) (client.Client, error) {
	o.HostPort = "passthrough:///archive" // is never dialled
	o.ConnectionOptions = client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithUnaryInterceptor(
		func(_ context.Context, _ string, request, reply any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
			return a.answer(request, reply)
		})}}
	return client.NewLazyClient(o)
}

// Storage returns the storage of the values that are in the archive. What is put there is refused.
func (a *Archive) Storage() *storage.Storage { return storage.New(values{a}, storage.Options{}) }

// open opens a file once.
func (a *Archive) open(path string) (*archive.File, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f := a.files[path]; f != nil {
		return f, nil
	}
	f, err := archive.Open(path)
	if err == nil {
		a.files[path] = f
	}
	return f, err
}

// of are the files that a thread, or an attempt of a job, may be in; those of all for "". Later ones have newer runs.
func (a *Archive) of(threadID string) ([]*archive.File, error) {
	if owner := job.Of(threadID); owner != "" {
		threadID = job.WorkflowID(owner)
	}
	paths := []string{a.place}
	if a.dir {
		var err error
		if paths, err = archive.Of(a.place, threadID); err != nil {
			return nil, &thread.Error{Kind: thread.ErrBadInput, Message: fmt.Sprintf("archive %q cannot be read", a.place), Cause: err}
		}
	}
	var all []*archive.File
	for _, path := range paths {
		f, err := a.open(path)
		if err != nil {
			return nil, err
		}
		if threadID == "" || f.Thread == threadID {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(x, y *archive.File) int { return x.At.Compare(y.At) })
	return all, nil
}

// kept is a run, and the file that it is in.
type kept struct {
	*archive.Run
	file *archive.File
}

// runs are those of a thread, "" for all, the newest last; each once, however many files have it.
func (a *Archive) runs(threadID string) ([]kept, error) {
	files, err := a.of(threadID)
	var all []kept
	seen := map[string]bool{}
	for _, f := range files {
		for i := range f.Runs {
			r := &f.Runs[i]
			if (threadID == "" || r.Thread == threadID) && !seen[r.ID] {
				seen[r.ID] = true
				all = append(all, kept{r, f})
			}
		}
	}
	slices.SortStableFunc(all, func(x, y kept) int { return x.started().Compare(y.started()) })
	return all, err
}

func (k kept) continued() bool {
	return k.Described.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
}

// values are the stored values of an archive, as the objects of a storage.
type values struct{ *Archive }

// errReadOnly is why nothing is stored.
var errReadOnly = errors.New("an archive is only read")

// Where implements [storage.Objects].
func (v values) Where() string { return v.place }

// Has implements [storage.Objects].
func (v values) Has(context.Context, string) (bool, error) { return false, errReadOnly }

// Put implements [storage.Objects].
func (v values) Put(context.Context, string, []byte) error { return errReadOnly }

// Empty implements [storage.Objects].
func (v values) Empty(context.Context, string, func(storage.Object)) error { return errReadOnly }

// Get implements [storage.Objects]. What refers to a value was read from a file that is open.
func (v values) Get(_ context.Context, name string) ([]byte, error) {
	for _, f := range v.opened() {
		if f.Has(name) {
			return f.Value(name)
		}
	}
	return nil, fmt.Errorf("%s in %s: %w", name, v.place, fs.ErrNotExist)
}

// List implements [storage.Objects].
func (v values) List(_ context.Context, space string) (all []storage.Object, err error) {
	for _, f := range v.opened() {
		for _, o := range f.Values() {
			if strings.HasPrefix(o.Name, space+"/") {
				all = append(all, o)
			}
		}
	}
	return all, nil
}

func (v values) opened() []*archive.File {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Collect(maps.Values(v.files))
}
