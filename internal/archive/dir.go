package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// What files of a directory of archives are called: THREAD.RUN.archive, the proof that the thread was erased beside it, and the file
// that is locked while threads are archived into the directory.
const (
	ending      = ".archive"
	proofEnding = ".erased.json"
	partEnding  = ".part"
	lockName    = "archives.lock"
)

const (
	// longestName is from how many bytes on a thread's name is shortened in that of its file: file systems take 255.
	longestName = 150
	// leftover is how old a file is that a process which died was writing.
	leftover = time.Hour
)

// ErrLocked is the error of a directory that somebody else archives into.
var ErrLocked = errors.New("another process archives into it")

// Lock holds a directory for one who archives into it, this process or another, until it is released, and makes it if there is none.
// Two at once would take each other's removals for their own and prove too little. The lock ends with the process, however that ends.
// Its file stays: without it two processes could lock two files of one name.
func Lock(dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(dir, lockName))
	switch got, err := lock.TryLock(); {
	case err != nil:
		return nil, err
	case !got:
		return nil, ErrLocked
	}
	return func() { _ = lock.Unlock() }, nil
}

// Path is the file of a thread whose newest run is the one with that id.
func Path(dir, threadID, newest string) string {
	return filepath.Join(dir, stem(threadID)+"."+newest+ending)
}

func stem(threadID string) string {
	name := url.PathEscape(threadID)
	if len(name) <= longestName {
		return name
	}
	sum := sha256.Sum256([]byte(threadID))
	return name[:longestName-33] + "-" + hex.EncodeToString(sum[:16])
}

// Of lists the files of a thread in a directory, in no order; those of all threads for "".
func Of(dir, threadID string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name(), ending)
		run := strings.LastIndexByte(name, '.')
		if is && run > 0 && e.Type().IsRegular() && (threadID == "" || name[:run] == stem(threadID)) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, nil
}

// RemoveParts removes the files of a thread that are being written, or were by processes that died. One that is whole meanwhile is
// there as what it is: see [Of].
func RemoveParts(dir, threadID string) error {
	parts, err := filepath.Glob(filepath.Join(escaped(dir), "*"+partEnding))
	if err != nil {
		return err
	}
	for _, part := range parts {
		behind, of := strings.CutPrefix(filepath.Base(part), stem(threadID)+".")
		run, _, is := strings.Cut(behind, ending+".")
		if !of || !is || strings.Contains(run, ".") {
			continue
		}
		if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Unproved lists the files of a thread, of all for "", that was not erased yet, as far as anybody has noted; none of a directory that is
// not there.
func Unproved(dir, threadID string) (paths []string, err error) {
	all, err := Of(dir, threadID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, path := range all {
		if _, err := os.Stat(path + proofEnding); errors.Is(err, fs.ErrNotExist) {
			paths = append(paths, path)
		}
	}
	return paths, err
}

// Sweep removes what processes that died were writing into a directory.
func Sweep(dir string) {
	parts, _ := filepath.Glob(filepath.Join(escaped(dir), "*"+ending+".*"+partEnding))
	for _, part := range parts {
		if info, err := os.Stat(part); err == nil && time.Since(info.ModTime()) > leftover {
			_ = os.Remove(part)
		}
	}
}

// escaped is a directory as a pattern that matches nothing else.
func escaped(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// Remove removes a file with its proof, whatever is in it, and returns its size and the hex SHA-256 that it had.
func Remove(path string) (size int64, digest string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	sum := sha256.New()
	size, err = io.Copy(sum, file)
	if err = errors.Join(err, file.Close()); err != nil {
		return 0, "", err
	}
	if err := os.Remove(path + proofEnding); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, "", err
	}
	if err := os.Remove(path); err != nil {
		return 0, "", err
	}
	return size, hex.EncodeToString(sum.Sum(nil)), syncDir(filepath.Dir(path))
}

// Prove writes the proof that what a file holds was erased. It has a field "sha256" with that of the file.
func Prove(path string, proof any) (err error) {
	text, err := json.MarshalIndent(proof, "", "  ")
	if err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*"+partEnding)
	if err != nil {
		return err
	}
	defer os.Remove(part.Name())
	_, err = part.Write(append(text, '\n'))
	if err = errors.Join(err, part.Sync(), part.Close()); err != nil {
		return err
	}
	if err := os.Rename(part.Name(), path+proofEnding); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// readProof reads the proof beside a file, if there is one.
func readProof(path string, into any) (there bool, err error) {
	text, err := os.ReadFile(path + proofEnding)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		err = fmt.Errorf("the proof beside it: %w", err)
	}
	return true, err
}
