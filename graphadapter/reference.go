package graphadapter

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

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
	// PartLoop and PartSpec are a [SegmentRequest]'s Loop, and its Spec as JSON.
	PartLoop Part = "loop"
	PartSpec Part = "spec"
)

// DigestOf names a value by its content: SHA-256 in hex.
func DigestOf(v pregel.Value) string {
	sum := sha256.Sum256(v)
	return hex.EncodeToString(sum[:])
}

// Fill puts the values in place of the request's references, which are gone then. value returns the value that a
// reference stands for; it becomes the request's own. One that is not what its reference says is a [*WrongValueError].
// With an error nothing was filled in.
func (r *NodeRequest) Fill(value func(Reference) (pregel.Value, error)) error {
	if len(r.References) == 0 {
		return nil
	}
	filled, errs := *r, []error(nil)
	filled.References = nil
	filled.Task.State = maps.Clone(r.Task.State) // it may be shared
	for _, ref := range r.References {
		if err := Fill(ref, value, filled.put); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	*r = filled
	return nil
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

// put fills in one part.
func (r *NodeRequest) put(ref Reference, v pregel.Value) error {
	if r.Task.State == nil && (ref.Part == PartChannel || ref.Part == PartRest) {
		r.Task.State = map[string]pregel.Value{}
	}
	switch ref.Part {
	case PartChannel:
		r.Task.State[ref.Channel] = v
	case PartRest:
		return json.Unmarshal(v, &r.Task.State) // adds to it
	case PartArg:
		r.Task.Arg = v
	case PartDone:
		return json.Unmarshal(v, &r.Task.Done)
	case PartContext:
		r.Context = v
	default:
		return UnknownPart(ref)
	}
	return nil
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
