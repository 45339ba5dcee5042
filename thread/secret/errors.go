package secret

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Why a payload cannot be read, or keys cannot be used. Callers tell them apart with errors.Is.
var (
	// ErrNoKeys: a payload is encrypted, and this process was given no keys.
	ErrNoKeys = errors.New("no keys")
	// ErrUnknownKey: a payload is encrypted with a key that this process does not have.
	ErrUnknownKey = errors.New("unknown key")
	// ErrWrongKey: the key of that id does not open the payload: it is another key under the same id, or the payload was changed.
	ErrWrongKey = errors.New("wrong key")
	// ErrDamaged: a payload says that it is encrypted, and does not have the form of one.
	ErrDamaged = errors.New("damaged")
	// ErrBadKeys: a file or a command has no keys that can be used.
	ErrBadKeys = errors.New("bad keys")
	// ErrTooLarge: a payload above [MaxBytes].
	ErrTooLarge = errors.New("too large")
)

// Error says what is wrong with a payload or with keys, and what to do, in one line. It shows no byte of a key or of a payload. Nothing
// is lost by it: a worker gives the task back, which the server repeats until a worker has the key.
type Error struct {
	// Kind is one of the sentinels above.
	Kind error
	// Key is the id of the payload's key, "" when none is concerned.
	Key string
	// Where names the place of the keys, and Has the ids that are there.
	Where string
	Has   []string
	// Problem says more, in words that follow a colon; "" for nothing.
	Problem string
}

func (e *Error) Error() string {
	key := strconv.Quote(e.Key)
	text := ""
	switch e.Kind {
	case ErrNoKeys:
		text = fmt.Sprintf("what is stored is encrypted with the key %s, and this program was given no keys: give it those of the workers "+
			"(--keys FILE, --keys-command or SUPERSTEP_KEYS)", key)
	case ErrUnknownKey:
		text = fmt.Sprintf("what is stored is encrypted with the key %s, which is not among the keys of %s (%s): put that key back, or give "+
			"this program the keys of the workers", key, e.Where, strings.Join(e.Has, ", "))
	case ErrWrongKey:
		text = fmt.Sprintf("the key %s of %s does not open what is stored: it is another key than the one that encrypted it under this id, or the "+
			"stored value was changed; give this program the keys of the workers", key, e.Where)
	case ErrDamaged:
		text = "a stored value is marked as encrypted and is not: restore the server's database, or what lies in its storage, from a backup"
	case ErrTooLarge:
		text = fmt.Sprintf("a value is too large to be encrypted, the most is %d bytes", MaxBytes)
	default:
		text = fmt.Sprintf("the keys of %s cannot be used", e.Where)
	}
	if e.Problem != "" {
		text += ": " + e.Problem
	}
	return text
}

// Unwrap lets errors.Is see the kind.
func (e *Error) Unwrap() error { return e.Kind }
