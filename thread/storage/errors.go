package storage

import (
	"errors"
	"fmt"
)

// Why a stored value is not to be had, or cannot be stored. Callers tell them apart with errors.Is.
var (
	// ErrMissing: the storage does not have an object that a history refers to. It was erased, or this is another storage.
	ErrMissing = errors.New("missing")
	// ErrDamaged: an object is not what was stored under its name.
	ErrDamaged = errors.New("damaged")
	// ErrUnavailable: the storage does not answer, refuses, or is full. Tried again it may.
	ErrUnavailable = errors.New("unavailable")
	// ErrNone: a history refers to a storage, and this process was given none.
	ErrNone = errors.New("no storage")
	// ErrTooLarge: a value above [MaxValueBytes].
	ErrTooLarge = errors.New("too large")
)

// Error says what is wrong with a stored value and what to do. Nothing is lost by it: a worker gives the task back, which the server
// repeats until a worker has the value.
type Error struct {
	// Kind is one of the sentinels above.
	Kind error
	// Object is the name of what is concerned, "" when it has none; Where is the place of the storage.
	Object, Where string
	// For is the name of the value that was asked for, when Object is only what that one goes on from; "" when Object was asked for.
	For string
	// Cause is what the storage said, nil for nothing.
	Cause error
}

// behind is the error of a value that goes on from one that cannot be had.
func behind(err error, name string) error {
	var told *Error
	if !errors.As(err, &told) || told.Object == "" {
		return err
	}
	whole := *told
	whole.For = name
	return &whole
}

func (e *Error) Error() string {
	text := ""
	switch e.Kind {
	case ErrMissing:
		text = fmt.Sprintf("the stored value %s%s is not in %s: restore it there from a backup, or give this process the storage that has it", e.Object, e.goesOn(), e.Where)
	case ErrDamaged:
		text = fmt.Sprintf("the stored value %s%s in %s is not what was stored: restore it from a backup", e.Object, e.goesOn(), e.Where)
	case ErrNone:
		text = "a value of the thread lies in a storage, and this process was given none: give it that of the workers (--storage, or WorkerConfig.Storage and ClientConfig.Storage; storage.Announced on a devserver)"
	case ErrTooLarge:
		text = fmt.Sprintf("a value is too large to be stored, the most is %d bytes", MaxValueBytes)
	default:
		text = fmt.Sprintf("the storage %s cannot be used now: check that it is there, has room and may be written", e.Where)
	}
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap lets errors.Is see the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// goesOn says what else cannot be read.
func (e *Error) goesOn() string {
	if e.For == "" {
		return ""
	}
	return fmt.Sprintf(", which the value %s and others go on from,", e.For)
}
