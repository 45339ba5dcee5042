package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
)

// Writer writes one file. Until [Writer.Close] has returned nil it has another name, so what has its name is whole and on the disk.
type Writer struct {
	head   Head
	path   string
	file   *os.File
	sum    hash.Hash // of all bytes that were written
	tar    *tar.Writer
	runs   int
	values map[string]bool
}

// Create begins the file of a thread in a directory that is there: see [Lock].
func Create(dir string, head Head) (*Writer, error) {
	head.Format = format
	path := Path(dir, head.Thread, head.Newest)
	file, err := os.CreateTemp(dir, filepath.Base(path)+".*"+partEnding)
	if err != nil {
		return nil, err
	}
	w := &Writer{head: head, path: path, file: file, sum: sha256.New(), values: map[string]bool{}}
	w.tar = tar.NewWriter(io.MultiWriter(file, w.sum))
	if err := w.json(headEntry, head); err != nil {
		w.Abandon()
		return nil, err
	}
	return w, nil
}

// Run adds a run: each hands out its events, the first first.
func (w *Writer) Run(threadID, id string, described *workflowservice.DescribeWorkflowExecutionResponse, each func(func(*historypb.HistoryEvent) error) error) error {
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	var sum Sum
	err = each(func(event *historypb.HistoryEvent) error {
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(event)
		if err != nil {
			return err
		}
		sum.add(raw)
		_, err = z.Write(append(binary.AppendUvarint(nil, uint64(len(raw))), raw...))
		return err
	})
	if err = errors.Join(err, z.Close()); err != nil {
		return err
	}
	what, err := proto.MarshalOptions{Deterministic: true}.Marshal(described)
	if err != nil {
		return err
	}
	w.runs++
	below := fmt.Sprintf("%s%06d/", runsEntry, w.runs)
	return inTurn(
		func() error { return w.entry(below+runHistory, packed.Bytes()) },
		func() error { return w.entry(below+runDescribed, what) },
		func() error {
			return w.json(below+runHead, Run{Thread: threadID, ID: id, Events: sum.Events, Bytes: sum.Bytes, SHA256: sum.SHA256()})
		})
}

// Has reports whether a value was added.
func (w *Writer) Has(name string) bool { return w.values[name] }

// Value adds a stored value, as the storage has it, under the name that it has there.
func (w *Writer) Value(name string, object []byte) error {
	w.values[name] = true
	return w.entry(valuesEntry+name, object)
}

// Close ends the file: when it returns nil the whole of it outlives a loss of power, under its name, which it returns.
func (w *Writer) Close() (path string, err error) {
	defer w.Abandon()
	if err := w.tar.Flush(); err != nil {
		return "", err
	}
	if err := w.entry(digestEntry, []byte(hex.EncodeToString(w.sum.Sum(nil)))); err != nil {
		return "", err
	}
	err = inTurn(w.tar.Close, w.file.Sync, w.file.Close,
		func() error { return os.Rename(w.file.Name(), w.path) },
		func() error { return syncDir(filepath.Dir(w.path)) })
	return w.path, err
}

// Abandon removes what was written, unless the file was closed.
func (w *Writer) Abandon() {
	_ = w.file.Close()
	_ = os.Remove(w.file.Name()) // it has its own name by then, or is not wanted
}

func (w *Writer) json(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return w.entry(name, append(text, '\n'))
}

func (w *Writer) entry(name string, content []byte) error {
	err := w.tar.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o600, Format: tar.FormatUSTAR, Typeflag: tar.TypeReg})
	if err == nil {
		_, err = w.tar.Write(content)
	}
	return err
}

// inTurn does one thing after the other, up to the first error.
func inTurn(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// syncDir stores what a directory's entries are.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
