package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"

	"superstep.dev/thread"
	"superstep.dev/thread/storage"
)

// block is what a tar file is made of; behind its last entry there are two empty ones.
const block = 512

// place is where an entry's content lies in a file.
type place struct{ at, size int64 }

// end is where the next entry begins.
func (p place) end() int64 { return (p.at + p.size + block - 1) / block * block }

// File is a file that was opened, and is what was written. It is safe for concurrent use.
type File struct {
	Head
	Path string
	// Bytes and SHA256 are those of the whole file.
	Bytes  int64
	SHA256 string
	Runs   []Run

	file   *os.File
	values map[string]place
}

// Open opens a file, reads all of it once, and refuses one that is not as it was written, or not as its proof of erasure says.
//
// Errors: a [thread.Error] of the kind ErrBadInput; ErrNotFound when there is no such file.
func Open(path string) (*File, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &thread.Error{Kind: thread.ErrNotFound, Message: fmt.Sprintf("there is no archive %q", path)}
	}
	if err != nil {
		return nil, refused(path, err)
	}
	f := &File{Path: path, file: file, values: map[string]place{}}
	if err = f.read(); err == nil {
		err = f.proved()
	}
	if err != nil {
		f.Close()
		return nil, refused(path, err)
	}
	return f, nil
}

// refused is the one error of a file that cannot be used.
func refused(path string, why error) error {
	if errors.Is(why, thread.ErrBadInput) {
		return why
	}
	return &thread.Error{Kind: thread.ErrBadInput, Message: fmt.Sprintf("archive %q is not what was written", path), Cause: why,
		Do: "Take a copy of it that is whole"}
}

// proved holds the file to its proof of erasure, if that lies beside it.
func (f *File) proved() error {
	var proof struct {
		SHA256 string `json:"sha256"`
	}
	there, err := readProof(f.Path, &proof)
	if err == nil && there && proof.SHA256 != f.SHA256 {
		err = fmt.Errorf("its SHA-256 is %s, and %s beside it says %s", f.SHA256, proofEnding, proof.SHA256)
	}
	return err
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// Run returns a run of the file, nil for none.
func (f *File) Run(threadID, id string) *Run {
	for i := range f.Runs {
		if f.Runs[i].Thread == threadID && f.Runs[i].ID == id {
			return &f.Runs[i]
		}
	}
	return nil
}

// Has reports whether the file has a stored value of that name.
func (f *File) Has(value string) bool { _, there := f.values[value]; return there }

// Value returns a stored value, as the storage had it. The error for one that is not there is an fs.ErrNotExist.
func (f *File) Value(name string) ([]byte, error) {
	p, there := f.values[name]
	if !there {
		return nil, fmt.Errorf("%s in %s: %w", name, f.Path, fs.ErrNotExist)
	}
	return f.content(p, storage.MaxObjectBytes)
}

// Events hands out the events of a run, the first first.
func (f *File) Events(run *Run, take func(*historypb.HistoryEvent) error) error {
	z, err := zstd.NewReader(io.NewSectionReader(f.file, run.history.at, run.history.size), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return refused(f.Path, err)
	}
	defer z.Close()
	in := bufio.NewReader(io.LimitReader(z, mostHistory))
	for n := 0; n < run.Events; n++ {
		event := &historypb.HistoryEvent{}
		if err := (protodelim.UnmarshalOptions{MaxSize: mostEvent}).UnmarshalFrom(in, event); err != nil {
			return refused(f.Path, fmt.Errorf("event %d of run %s of thread %q: %w", n+1, run.ID, run.Thread, err))
		}
		if err := take(event); err != nil {
			return err
		}
	}
	return nil
}

func (f *File) content(p place, most int64) ([]byte, error) {
	if p.size > most {
		return nil, refused(f.Path, fmt.Errorf("an entry has %d bytes, the most is %d", p.size, most))
	}
	content := make([]byte, p.size)
	_, err := f.file.ReadAt(content, p.at)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, refused(f.Path, err)
	}
	return content, nil
}

// read verifies the file and finds what is in it.
func (f *File) read() error {
	entries, err := f.index()
	if err != nil {
		return err
	}
	first, last := entries[0], entries[len(entries)-1]
	if first.name != headEntry || last.name != digestEntry || len(entries) < 2 {
		return errors.New("it is cut, or no archive")
	}
	if err := f.verify(last.place, entries[len(entries)-2].end()); err != nil {
		return err
	}
	if err := f.json(first.place, &f.Head); err != nil {
		return err
	}
	if f.Format != format {
		return fmt.Errorf("it has the form %d, and this program reads %d", f.Format, format)
	}
	runs := map[string]map[string]place{}
	for _, e := range entries[1 : len(entries)-1] {
		if value, is := strings.CutPrefix(e.name, valuesEntry); is {
			f.values[value] = e.place
			continue
		}
		run, part, _ := strings.Cut(strings.TrimPrefix(e.name, runsEntry), "/")
		if runs[run] == nil {
			runs[run] = map[string]place{}
		}
		if runs[run][part] = e.place; part == runHead { // the last of the three
			if err := f.addRun(runs[run]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *File) addRun(parts map[string]place) error {
	run := Run{history: parts[runHistory], Described: &workflowservice.DescribeWorkflowExecutionResponse{}}
	if err := f.json(parts[runHead], &run); err != nil {
		return err
	}
	described, err := f.content(parts[runDescribed], mostDescribed)
	if err == nil {
		err = proto.Unmarshal(described, run.Described)
	}
	if err != nil {
		return err
	}
	f.Runs = append(f.Runs, run)
	return nil
}

func (f *File) json(p place, into any) error {
	text, err := f.content(p, mostHead)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

type entry struct {
	name string
	place
}

// index lists the entries. Nothing that it finds counts before the digest was held against the bytes.
func (f *File) index() (entries []entry, err error) {
	for in := tar.NewReader(f.file); ; {
		head, err := in.Next()
		if errors.Is(err, io.EOF) && len(entries) > 0 {
			return entries, nil
		}
		if err != nil {
			return nil, fmt.Errorf("it is cut, or no archive: %w", err)
		}
		at, err := f.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{head.Name, place{at, head.Size}})
	}
}

// verify holds the digest, which lies at a place, against the bytes up to before.
func (f *File) verify(digest place, before int64) error {
	want, err := f.content(digest, 2*sha256.Size)
	if err != nil {
		return err
	}
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	f.Bytes = info.Size()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f.file, 0, before)); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != string(want) {
		return fmt.Errorf("its bytes have the SHA-256 %s, and it says %q", got, want)
	}
	if f.Bytes != digest.end()+2*block || digest.at != before+block {
		return fmt.Errorf("it has %d bytes, and should have %d", f.Bytes, digest.end()+2*block)
	}
	rest := make([]byte, f.Bytes-before)
	if _, err := f.file.ReadAt(rest, before); err != nil {
		return err
	}
	if tail := rest[block+digest.size:]; len(bytes.Trim(tail, "\x00")) > 0 {
		return errors.New("something was written behind its end")
	}
	sum.Write(rest)
	f.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return nil
}

// ThreadOf returns the thread that a file says it has. Nothing else of the file is read or verified.
//
// Errors: those of [Open].
func ThreadOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", refused(path, err)
	}
	defer file.Close()
	var head Head
	in := tar.NewReader(file)
	first, err := in.Next()
	if err == nil && (first.Name != headEntry || first.Size > mostHead) {
		err = errors.New("it is no archive")
	}
	if err == nil {
		err = json.NewDecoder(in).Decode(&head)
	}
	if err != nil {
		return "", refused(path, err)
	}
	return head.Thread, nil
}

// Values lists the stored values of the file.
func (f *File) Values() []storage.Object {
	all := make([]storage.Object, 0, len(f.values))
	for name, p := range f.values {
		all = append(all, storage.Object{Name: name, Bytes: p.size})
	}
	return all
}
