package graphadapter

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"superstep.dev/graphadapter/pregel"
)

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
	return fmt.Sprintf("found a value of %d bytes with digest %.12s… where one of %d bytes with digest %.12s… was sent",
		e.Size, e.Digest, e.Want.Size, e.Want.Digest)
}
