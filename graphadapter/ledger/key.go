package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Hash returns the SHA-256 of the parts in hex. Each part goes with its length, so that no two lists of parts are
// the same bytes.
func Hash(parts ...string) string {
	h := sha256.New()
	var size [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(p)))
		h.Write(size[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// KeyLength is 128 bits in hex: short enough for people and for the key fields of other systems.
const KeyLength = 32

// UndoKey is the key of an effect's compensation.
func UndoKey(effect string) string { return Hash("compensate", effect)[:KeyLength] }

// KindApproval is the ledger entry of a question about an action: its Params are the action as it was asked about, its
// state is committed once the approval was acted upon, and failed when that was refused.
const KindApproval Kind = "approval"

// UndosBegun are the keys of the effects among entries that a call was made to undo.
func UndosBegun(entries []Entry) map[string]bool {
	begun, tried := map[string]bool{}, map[string]bool{}
	for _, e := range entries {
		if e.Kind == KindUndo && e.Attempts > 0 {
			begun[e.Key] = true
		}
	}
	for _, e := range entries {
		if e.Kind == KindEffect && begun[UndoKey(e.Key)] {
			tried[e.Key] = true
		}
	}
	return tried
}
