// Package archive keeps threads in files: the histories of all runs as the server had them, and the stored values that they refer to.
// One file is one thread, or one job with all its attempts. It is a tar file, whose last entry is the SHA-256 of all bytes before, so
// that one that was cut or changed is refused as a whole. Payloads stay encoded as the server had them: encrypted ones stay encrypted.
package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
)

// format is the version of the form in which files are written.
const format = 1

// The entries of a file: the head comes first, then runs and values, and last the digest.
const (
	headEntry   = "superstep-archive.json"
	runsEntry   = "runs/"
	valuesEntry = "values/"
	digestEntry = "sha256"
	// The three entries of a run.
	runHead, runDescribed, runHistory = "run.json", "described.pb", "history.zst"
)

// The bounds of what is read of a file, of which nobody knows who wrote it.
const (
	mostHead      = 1 << 20
	mostDescribed = 16 << 20
	mostEvent     = 64 << 20
	mostHistory   = 512 << 20
)

// Head says what a file holds.
type Head struct {
	Format int `json:"format"`
	// Thread is the thread, or job/ID; Newest its newest run.
	Thread    string    `json:"thread"`
	Newest    string    `json:"newest_run"`
	Namespace string    `json:"namespace"`
	At        time.Time `json:"archived_at"`
}

// Run is one run in a file: of the thread, or of a job or one of its attempts.
type Run struct {
	Thread string `json:"thread"`
	ID     string `json:"run"`
	Events int    `json:"events"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // of its history: see [Sum]
	// Described is what the server said of the run.
	Described *workflowservice.DescribeWorkflowExecutionResponse `json:"-"`

	history place
}

// Sum adds up a run's history: how many events of how many bytes, and their SHA-256 one behind the other. The zero value is an empty one.
type Sum struct {
	Events int
	Bytes  int64
	hash   hash.Hash
}

// Add adds the next event.
func (s *Sum) Add(event *historypb.HistoryEvent) error {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(event)
	s.add(raw)
	return err
}

func (s *Sum) add(raw []byte) {
	if s.hash == nil {
		s.hash = sha256.New()
	}
	s.hash.Write(raw)
	s.Events, s.Bytes = s.Events+1, s.Bytes+int64(len(raw))
}

// SHA256 is the hex digest of all events.
func (s *Sum) SHA256() string {
	if s.hash == nil {
		s.hash = sha256.New()
	}
	return hex.EncodeToString(s.hash.Sum(nil))
}
