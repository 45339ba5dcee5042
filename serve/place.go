package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/google/uuid"
)

// place names a checkpoint.
type place struct {
	Thread     string            `json:"thread_id"`
	Namespace  string            `json:"checkpoint_ns"`
	Checkpoint string            `json:"checkpoint_id,omitempty"`
	Run        string            `json:"run_id,omitempty"`
	Map        map[string]string `json:"checkpoint_map,omitempty"`
}

// Clients take the id of a checkpoint for one that no other thread has, and for a UUID. A thread calls a checkpoint "c-" and ten
// digits, which sum up all that led to it, and a copy of a thread has the same ones. The UUID has those digits first, and behind them
// what comes of the thread's id.
const (
	checkpointBegin = "c-"
	checkpointOwn   = 10
	checkpointBytes = checkpointOwn / 2
)

// checkpointOut is the id of a thread's checkpoint as clients see it.
func checkpointOut(thread, id string) string {
	digits, ok := strings.CutPrefix(id, checkpointBegin)
	own, err := hex.DecodeString(digits)
	if !ok || err != nil || len(own) != checkpointBytes {
		return id
	}
	var out uuid.UUID
	sum := sha256.Sum256([]byte("superstep:checkpoint:" + thread))
	copy(out[:], own)
	copy(out[checkpointBytes:], sum[:])
	out[6], out[8] = out[6]&0x0f|0x80, out[8]&0x3f|0x80 // version 8: a UUID of one's own making
	return out.String()
}

// checkpointIn is the thread's id of a checkpoint, by either of them. That of another thread's stays as it is, and is found nowhere.
func checkpointIn(thread, id string) string {
	at, err := uuid.Parse(id)
	if err != nil {
		return id
	}
	if own := checkpointBegin + hex.EncodeToString(at[:checkpointBytes]); checkpointOut(thread, own) == at.String() {
		return own
	}
	return id
}
