package graphadapter

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
)

// LedgerVersion is the version of the stored form of a ledger.
const LedgerVersion = 1

// StoredLedger is a ledger as it travels in pregel.Outcome and pregel.Task.
type StoredLedger struct {
	Version int            `json:"version"`
	Entries []ledger.Entry `json:"entries"`
	CarryOver
}

// CarryOver is what an execution of a task that did not finish leaves to the next one, beside the entries of its ledger.
type CarryOver struct {
	// Failures counts the attempts that the node's retry policy has seen.
	Failures int `json:"failures,omitempty"`
	// RetryAt is when the next attempt may begin, by the server's clock; zero for at once.
	RetryAt time.Time `json:"retry_at,omitzero"`
	// Failed is why the last attempt failed, in words.
	Failed string `json:"failed,omitempty"`
	// Suspect says that an execution before may have acted outside without a trace in the ledger.
	Suspect bool `json:"suspect,omitempty"`
	// Lost says that one that was lost may have.
	Lost bool `json:"lost,omitempty"`
	// Begun says that the node has run as far as the ledger tells, and was then given back: what it streamed is void.
	Begun bool `json:"begun,omitempty"`
	// Emitted is what the failed attempts streamed.
	Emitted []pregel.Emission `json:"emitted,omitempty"`
}

func (b CarryOver) empty() bool {
	return b.Failures == 0 && b.RetryAt.IsZero() && b.Failed == "" && !b.Suspect && !b.Lost && !b.Begun && len(b.Emitted) == 0
}

// EncodeLedger returns entries in their stored form, in their order; nil when there are none.
func EncodeLedger(entries []ledger.Entry) (pregel.Value, error) {
	return EncodeCarryOver(entries, CarryOver{})
}

// EncodeCarryOver is [EncodeLedger] with what else the next execution has to know; nil when there is nothing.
func EncodeCarryOver(entries []ledger.Entry, b CarryOver) (pregel.Value, error) {
	if len(entries) == 0 && b.empty() {
		return nil, nil
	}
	v, err := jsontext.Encode(StoredLedger{Version: LedgerVersion, Entries: entries, CarryOver: b})
	if err != nil {
		return nil, fmt.Errorf("superstep: encode a task's ledger: %w", err)
	}
	return v, nil
}

// DecodeLedger returns the entries of a stored ledger. Nil and null are the empty ledger. A ledger written by a newer
// version than this one understands is an error: guessing could repeat a call.
func DecodeLedger(v pregel.Value) ([]ledger.Entry, error) {
	entries, _, err := DecodeCarryOver(v)
	return entries, err
}

// DecodeCarryOver is [DecodeLedger] with what else the last execution left.
func DecodeCarryOver(v pregel.Value) ([]ledger.Entry, CarryOver, error) {
	if len(v) == 0 || pregel.IsNull(v) {
		return nil, CarryOver{}, nil
	}
	var stored StoredLedger
	if err := json.Unmarshal(v, &stored); err != nil {
		return nil, CarryOver{}, fmt.Errorf("superstep: decode a task's ledger: %w", err)
	}
	if stored.Version != LedgerVersion {
		return nil, CarryOver{}, fmt.Errorf("superstep: a task's ledger has version %d, this worker understands %d: run a "+
			"newer worker", stored.Version, LedgerVersion)
	}
	return stored.Entries, stored.CarryOver, nil
}

// MergeLedger returns the stored ledger base with newer put over it: its entries, and what the attempts left. Heartbeats
// carry only what the task's input did not.
func MergeLedger(base, newer pregel.Value) (pregel.Value, error) {
	entries, between, err := merged(base, newer)
	if err != nil {
		return nil, err
	}
	return EncodeCarryOver(entries, between)
}

// LastLedger is [MergeLedger] of a task that has ended with its last heartbeat: its attempts are counted no more, and
// emitted is what they streamed.
func LastLedger(base, beat pregel.Value) (last pregel.Value, emitted []pregel.Emission, err error) {
	entries, between, err := merged(base, beat)
	if err == nil {
		last, err = EncodeLedger(entries)
	}
	return last, between.Emitted, err
}

func merged(base, newer pregel.Value) ([]ledger.Entry, CarryOver, error) {
	j, err := NewMemoryJournal(base)
	if err != nil {
		return nil, CarryOver{}, err
	}
	added, between, err := DecodeCarryOver(newer)
	j.Add(added...)
	return j.Entries(), between, err
}

// NewMemoryJournal returns a journal that holds the entries of a stored ledger; nil is the empty one.
func NewMemoryJournal(stored pregel.Value) (*MemoryJournal, error) {
	entries, err := DecodeLedger(stored)
	if err != nil {
		return nil, err
	}
	j := &MemoryJournal{}
	j.Add(entries...)
	return j, nil
}

// Reference stands for a part of a [NodeRequest] that is not sent, because the run's history already tells what it is.
type Reference struct {
	Part Part `json:"part"`
	// Channel names the channel of a PartChannel.
	Channel string `json:"channel,omitempty"`
	// Digest is [DigestOf] of the value: whoever finds a value by it can tell that it is the right one.
	Digest string `json:"digest"`
	// Size is the value's length in bytes.
	Size int `json:"size"`
}

// Part names a part of a [NodeRequest].
type Part string

// The parts of a request that can go by reference.
const (
	// PartChannel is one channel of Task.State.
	PartChannel Part = "channel"
	// PartRest is one JSON object with channels of Task.State that are each too small for a reference, but not together.
	PartRest Part = "rest"
	// PartArg is Task.Arg, PartDone is Task.Done as JSON, PartContext is the request's Context.
	PartArg     Part = "arg"
	PartDone    Part = "done"
	PartContext Part = "context"
	// PartLoop and PartSpec are the Loop of a segment's request, and its Spec as JSON.
	PartLoop Part = "loop"
	PartSpec Part = "spec"
)

// Reads names what a node reads by the reference, for people.
func (r Reference) Reads() string {
	switch r.Part {
	case PartChannel:
		return fmt.Sprintf("value of the field %q", r.Channel)
	case PartRest:
		return "value of its smaller fields together"
	case PartArg:
		return "argument of the Send"
	case PartDone:
		return "result of the node, which its branches read,"
	case PartContext:
		return "context of the run"
	case PartLoop:
		return "state of the run"
	case PartSpec:
		return "spec of the graph"
	}
	return fmt.Sprintf("part %q", r.Part)
}

// DigestOf names a value by its content: SHA-256 in hex.
func DigestOf(v pregel.Value) string {
	sum := sha256.Sum256(v)
	return hex.EncodeToString(sum[:])
}

// Fill puts in one part, if its value is the one that was sent.
func Fill(ref Reference, value func(Reference) (pregel.Value, error), put func(Reference, pregel.Value) error) error {
	v, err := value(ref)
	switch {
	case err != nil:
		return err
	case len(v) != ref.Size || DigestOf(v) != ref.Digest:
		return &WrongValueError{Want: ref, Digest: DigestOf(v), Size: len(v)}
	}
	return put(ref, v)
}

// UnknownPart is the error of a reference to a part that its request does not have.
func UnknownPart(ref Reference) error {
	return fmt.Errorf("a request has a part %q, which this version does not know: upgrade the worker", ref.Part)
}

// WrongValueError says that a value is not the one that its reference stands for. The node did not run with it.
type WrongValueError struct {
	// Want is the reference; Digest and Size are those of the value that was found instead.
	Want   Reference
	Digest string
	Size   int
}

func (e *WrongValueError) Error() string {
	return fmt.Sprintf("found another %s: a value of %d bytes with digest %.12s… where one of %d bytes with digest %.12s… was sent",
		e.Want.Reads(), e.Size, e.Digest, e.Want.Size, e.Want.Digest)
}
