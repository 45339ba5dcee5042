package thread

import (
	"time"

	"superstep.dev/approval"
)

// EraseRequest asks to erase a thread, or a job with all its attempts.
type EraseRequest struct {
	// Thread is the thread's id, or job/ID for a job. An attempt of a job is erased with its job only.
	Thread string
	// Cancel cancels a run that is open first, and stops a job; without it a thread that is open is refused. By and Reason are
	// those of a [CancelRequest], Token proves who asks where rules want that.
	Cancel            bool
	By, Reason, Token string
	// KeepAudit is given the audit of each thread before anything is removed; nil erases it with the rest. It may be called again
	// with what is left of an audit when an earlier erasure was interrupted: read then fails, or gives the same chain.
	KeepAudit func(thread string, read func() (approval.Export, error)) error
	// Archives is a directory of archives of which those of the thread are removed too, when nothing else is left of it; "" leaves
	// archives alone.
	Archives string
	// Removed, when not nil, is told of each thing that was removed.
	Removed func(Removal)
}

// The kinds of a [Removal].
const (
	RemovedRun     = "run"
	RemovedValue   = "value"
	RemovedArchive = "archive"
)

// Removal is one thing that was removed: a run, with the hex SHA-256 of its history, a stored value, which has its digest as the end
// of its name, or an archive, by its path, with that of the file.
type Removal struct {
	Kind   string `json:"kind"`
	Thread string `json:"thread,omitempty"`
	Name   string `json:"name"`
	Events int    `json:"events,omitempty"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
}

// Erasure is the proof of an erasure: what this call has removed, and that nothing is found any more.
type Erasure struct {
	Thread string `json:"thread"`
	// Threads are those that the job had, itself included; of a thread it is its own id.
	Threads []string `json:"threads"`
	// Runs are those that were removed, in that order. None were left by an earlier erasure, or by the server's retention.
	Runs []Removal `json:"runs"`
	// Values counts the stored values that were removed, of so many bytes; ValuesSHA256 is the hex SHA-256 of their names, sorted,
	// one a line.
	Values       int    `json:"values"`
	Bytes        int64  `json:"bytes"`
	ValuesSHA256 string `json:"values_sha256,omitempty"`
	// Archives are those that were removed.
	Archives []Removal `json:"archives,omitempty"`
	// AuditKept are the threads whose audit was kept.
	AuditKept []string `json:"audit_kept,omitempty"`
	// Checked is when the server and the storage were asked for what is left, and had nothing. Storage names the storage that was
	// asked, "" when this client has none.
	Checked time.Time `json:"checked_at"`
	Storage string    `json:"storage,omitempty"`
}

// PruneRequest asks to archive and erase the threads, and the jobs with all their attempts, that have ended before a moment.
type PruneRequest struct {
	// Before is the moment. A thread counts with its newest run, a job also with the newest of its attempts; one that runs or waits
	// is left alone.
	Before time.Time
	// Graph leaves only threads of that graph, and jobs of that leader; "" for all.
	Graph string
	// Dir is the directory of the archives, one file for each thread. It is made if there is none.
	Dir string
	// DryRun only says what would be pruned. Nothing is written or removed.
	DryRun bool
	// Done, when not nil, is told of each thread that was pruned, or was not, one after the other.
	Done func(Pruned)
	// Removed, when not nil, is told of each thing that was removed, one after the other.
	Removed func(Removal)
}

// Pruned is a thread, or a job as job/ID, that was archived and erased; of a dry run, that would be; with an Error, that was not.
type Pruned struct {
	Thread string    `json:"thread"`
	Graph  string    `json:"graph,omitempty"` // or the leader of a job
	Status Status    `json:"status,omitempty"`
	Closed time.Time `json:"closed,omitzero"`
	// Archive is the file that the thread lies in, with the hex SHA-256 of the whole file.
	Archive string `json:"archive,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
	// Erasure is the proof that nothing is found any more on the server and in the storage.
	Erasure *Erasure `json:"erasure,omitempty"`
	// Error says why the thread was not pruned: nothing of it was removed that is not in an archive.
	Error string `json:"error,omitempty"`
}

// Pruning is what came of a [PruneRequest].
type Pruning struct {
	Before time.Time `json:"before"`
	DryRun bool      `json:"dry_run,omitempty"`
	// Threads are those that were pruned, and Failed those that were not, in the order in which that was known.
	Threads []Pruned `json:"threads"`
	Failed  []Pruned `json:"failed"`
}
