package thread

import "time"

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
