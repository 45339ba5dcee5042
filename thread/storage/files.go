package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// files are Objects in a directory: DIR/ab/SPACE/OBJECT, where ab are the first digits of the space, and what is being written in DIR/new.
type files struct{ dir string }

const (
	// renewed is how old a file may become before its date is set anew when it is used again.
	renewed = 24 * time.Hour
	// leftover is how old a file is that a process which died was writing.
	leftover = time.Hour
	newFiles = "new"
)

// Files returns a storage in a directory, which is made if there is none: for processes that share a file system. Files are readable for
// their owner alone. A directory that cannot be made or written is an error.
func Files(dir string, opts Options) (*Storage, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	f := files{dir}
	if err := os.MkdirAll(filepath.Join(dir, newFiles), 0o700); err != nil {
		return nil, &Error{Kind: ErrUnavailable, Where: dir, Cause: err}
	}
	probe, err := os.CreateTemp(filepath.Join(dir, newFiles), "probe-")
	if err != nil {
		return nil, &Error{Kind: ErrUnavailable, Where: dir, Cause: err}
	}
	_ = probe.Close()
	_ = os.Remove(probe.Name())
	f.sweep()
	return New(f, opts), nil
}

// sweep removes what processes that died were writing.
func (f files) sweep() {
	entries, _ := os.ReadDir(filepath.Join(f.dir, newFiles))
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > leftover {
			_ = os.Remove(filepath.Join(f.dir, newFiles, e.Name()))
		}
	}
}

// Where implements [Objects].
func (f files) Where() string { return f.dir }

func (f files) path(name string) string { return filepath.Join(f.dir, name[:2], name) }

// Has implements [Objects].
func (f files) Has(_ context.Context, name string) (bool, error) {
	path := f.path(name)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil && info.Size() == 0 {
		return false, nil // nothing is stored so; somebody has emptied it
	}
	if now := time.Now(); err == nil && now.Sub(info.ModTime()) > renewed {
		err = os.Chtimes(path, now, now)
	}
	return err == nil, err
}

// Put implements [Objects].
func (f files) Put(_ context.Context, name string, object []byte) (err error) {
	written, err := os.CreateTemp(filepath.Join(f.dir, newFiles), name[:8]+"-") // of the space
	if err != nil {
		return notGone(err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(written.Name())
		}
	}()
	_, err = written.Write(object)
	err = errors.Join(err, written.Sync(), written.Close())
	if err != nil {
		return err
	}
	to := f.path(name)
	if err = os.Rename(written.Name(), to); errors.Is(err, fs.ErrNotExist) {
		if err = f.makeFolder(filepath.Dir(to)); err == nil {
			err = os.Rename(written.Name(), to)
		}
	}
	if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}

// makeFolder makes the folder of a space, and the one of the 256 that it is in.
func (f files) makeFolder(path string) error {
	for _, folder := range []string{filepath.Dir(path), path} {
		if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return notGone(err)
		}
		if err := syncFolder(filepath.Dir(folder)); err != nil {
			return err
		}
	}
	return nil
}

// syncFolder stores what a folder's entries are.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return notGone(err)
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// notGone is an error of writing. That a folder is not there does not mean that an object is not.
func notGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the directory is gone: %v", err)
	}
	return err
}

// Get implements [Objects].
func (f files) Get(_ context.Context, name string) ([]byte, error) {
	file, err := os.Open(f.path(name))
	if err != nil {
		if _, gone := os.Stat(filepath.Join(f.dir, newFiles)); errors.Is(gone, fs.ErrNotExist) {
			return nil, notGone(gone) // not an object is missing, but all: it may be mounted again
		}
		return nil, err
	}
	defer file.Close()
	object, err := io.ReadAll(io.LimitReader(file, MaxObjectBytes+1))
	if len(object) > MaxObjectBytes {
		return object[:MaxObjectBytes], nil // its digest will tell
	}
	return object, err
}

// List implements [Objects].
func (f files) List(_ context.Context, space string) ([]Object, error) {
	entries, err := os.ReadDir(filepath.Join(f.dir, space[:2], space))
	if errors.Is(err, fs.ErrNotExist) {
		_, err = os.Stat(filepath.Join(f.dir, newFiles))
		return nil, notGone(err) // the directory may be away, which is not the same as empty
	}
	if err != nil {
		return nil, err
	}
	all := make([]Object, 0, len(entries))
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, Object{Name: space + "/" + e.Name(), Bytes: info.Size()})
	}
	return all, nil
}

// Empty implements [Objects]. Where nothing is remembered of what is there, nothing is to be waited for.
func (f files) Empty(ctx context.Context, space string, removed func(Object)) error {
	all, err := f.List(ctx, space)
	if err != nil || all == nil {
		return err
	}
	for _, o := range all {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := os.Remove(f.path(o.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		removed(o)
	}
	folder := filepath.Join(f.dir, space[:2], space)
	if err := os.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncFolder(filepath.Dir(folder))
}
