package token

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"superstep.dev/approval"
	"superstep.dev/internal/files"
)

// Environment variables that say where keys are.
const (
	// EnvKeys is the public keys as PEM, or the files and directories (of *.pem) that hold them, separated as in PATH.
	EnvKeys = "SUPERSTEP_APPROVAL_KEYS"
	// EnvSigningKey is the private key as PEM, or the file that holds it.
	EnvSigningKey = "SUPERSTEP_APPROVAL_SIGNING_KEY"
)

// ErrUnset is within the error when the environment names no keys.
var ErrUnset = errors.New("it is not set")

// Keyring verifies tokens with the public keys that it holds. It is an [approval.Keys].
type Keyring struct {
	// Now is the clock that tells which keys are active; nil means time.Now. Set it before the keyring is used.
	Now func() time.Time

	fixed   keySet
	watched *files.Watched[keySet] // nil for fixed keys
}

var _ approval.Keys = (*Keyring)(nil)

type keySet map[string]Key

// New returns a keyring of those keys. Their ids must differ.
func New(keys ...Key) (*Keyring, error) {
	set := keySet{}
	for _, k := range keys {
		if err := set.add(k); err != nil {
			return nil, &KeyError{Source: "the program", Problem: "they cannot be used", Err: err}
		}
	}
	return &Keyring{fixed: set}, nil
}

// Open returns a keyring of the keys in PEM files and in directories of files whose names end in .pem. They are read
// again when the keyring is used, at most once a second. Files that have vanished or cannot be used close the keyring: it
// verifies nothing, and [Keyring.Health] says what is wrong, until they can. Write a new file beside the old one and
// rename it, so that half a file is never read. A file that holds a private key must be readable by
// its owner alone.
func Open(paths ...string) (*Keyring, error) {
	if len(paths) == 0 {
		return nil, &KeyError{Source: "files", Problem: "none is named"}
	}
	k := &Keyring{watched: &files.Watched[keySet]{Paths: paths, Endings: []string{".pem"}, Make: readSet}}
	if _, _, err := k.watched.Get(); err != nil {
		return nil, keyError(strings.Join(paths, ", "), err)
	}
	return k, nil
}

// FromEnv returns a keyring of what [EnvKeys] says, files as [Open] does. The error holds [ErrUnset] when it is not set.
func FromEnv() (*Keyring, error) { return fromEnv(EnvKeys) }

func fromEnv(variable string) (*Keyring, error) {
	value := os.Getenv(variable)
	if value == "" {
		return nil, &KeyError{Source: variable, Problem: "no keys", Err: ErrUnset}
	}
	if !isPEM(value) {
		k, err := Open(filepath.SplitList(value)...)
		return k, namesNoPath(variable, err)
	}
	set := keySet{}
	if err := set.parse([]byte(value)); err != nil {
		return nil, &KeyError{Source: variable, Problem: "they cannot be used", Err: err}
	}
	return &Keyring{fixed: set}, nil
}

// Health returns a version of the keys, and a [*KeyError] when their files cannot be used as they are now: no key is in
// force then, and the version is of those before.
func (k *Keyring) Health() (version string, err error) {
	if k.watched == nil {
		return fmt.Sprintf("%d fixed keys", len(k.fixed)), nil
	}
	_, version, err = k.watched.Get()
	if err != nil {
		return version, k.unreadable(err)
	}
	return version, nil
}

func (k *Keyring) unreadable(err error) error {
	return keyError(strings.Join(k.watched.Paths, ", "), err)
}

// Owner implements [approval.Keys]: whose that key is, if it was active at that time. The error is an
// [*approval.TokenError], or a [*KeyError] when the keys cannot be read.
func (k *Keyring) Owner(keyID string, at time.Time) (approval.Owner, error) {
	key, err := k.key(keyID, at)
	return key.Owner, err
}

func (k *Keyring) now() time.Time { return clock(k.Now) }

// clock is the time that a clock says, by default the system's.
func clock(now func() time.Time) time.Time {
	if now == nil {
		return time.Now()
	}
	return now()
}

// key returns the key of that id if it is active at that time. Keys that cannot be read are not in force: the error is a
// [*KeyError] then.
func (k *Keyring) key(id string, now time.Time) (Key, error) {
	set := k.fixed
	if k.watched != nil {
		var err error
		if set, _, err = k.watched.Get(); err != nil {
			return Key{}, k.unreadable(err)
		}
	}
	key, known := set[id]
	switch {
	case !known:
		return Key{}, refuse(approval.CodeSignature, id, "the token is signed by a key that this worker does not know")
	case !key.NotBefore.IsZero() && now.Before(key.NotBefore):
		return Key{}, refuse(approval.CodeSignature, id, "the token is signed by a key that is not valid yet")
	case !key.RetiredAt.IsZero() && !now.Before(key.RetiredAt):
		return Key{}, refuse(approval.CodeRetiredKey, id, "the token is signed by a key that was retired: sign it with the new one")
	}
	return key, nil
}

func (s keySet) add(k Key) error {
	switch have, twice := s[k.ID]; {
	case !keyID.MatchString(k.ID):
		return errors.New("the id of a key has 1 to 64 letters, digits, dots, - and _")
	case len(k.Public) != ed25519.PublicKeySize:
		return fmt.Errorf("the key %s is no Ed25519 public key", k.ID)
	case twice && (!have.Public.Equal(k.Public) || !have.NotBefore.Equal(k.NotBefore) || !have.RetiredAt.Equal(k.RetiredAt) ||
		!have.Owner.Equal(k.Owner)):
		return fmt.Errorf("the id %s is there twice, for two keys, two owners or with two times", k.ID)
	case len(s) == maxKeys && !twice:
		return fmt.Errorf("there are more than %d keys: take out those that were retired", maxKeys)
	}
	if err := k.Owner.Check(); err != nil {
		return fmt.Errorf("the key %s: %w", k.ID, err)
	}
	s[k.ID] = k
	return nil
}

const maxKeys = 1_000

func (s keySet) parse(text []byte) error {
	all, err := parse(text)
	if err != nil {
		return err
	}
	for _, p := range all {
		if err := s.add(p.Key); err != nil {
			return err
		}
	}
	return nil
}

// readSet makes the keys of files. A file that is empty of keys is a mistake, and so is a place without any file.
func readSet(all []files.File) (keySet, error) {
	set := keySet{}
	for _, f := range all {
		if err := checkMode(f); err != nil {
			return nil, err
		}
		if err := set.parse(f.Text); err != nil {
			return nil, &KeyError{Source: f.Path, Problem: "they cannot be used", Err: err}
		}
	}
	if len(set) == 0 {
		return nil, errors.New("there is no file whose name ends in .pem")
	}
	return set, nil
}

// checkMode refuses a private key that others can read and keys that others can write.
func checkMode(f files.File) error {
	private := strings.Contains(string(f.Text), "PRIVATE KEY-----")
	switch {
	case runtime.GOOS == "windows": // has no such modes
	case private && f.Mode.Perm()&0o077 != 0:
		return &KeyError{Source: f.Path, Problem: fmt.Sprintf("others can use this private key (mode %04o): chmod 600 it, and make "+
			"a new one if they may have read it", f.Mode.Perm())}
	case f.Mode.Perm()&0o002 != 0:
		return &KeyError{Source: f.Path, Problem: fmt.Sprintf("anybody can add a key here (mode %04o): chmod o-w it", f.Mode.Perm())}
	}
	return nil
}

func isPEM(text string) bool { return strings.Contains(text, "-----BEGIN ") }

func keyError(source string, err error) error {
	if e, ok := errors.AsType[*KeyError](err); ok {
		return e
	}
	return &KeyError{Source: source, Problem: "they cannot be read", Err: err}
}

// namesNoPath leaves the path out of an error about a file: what stands in the variable may be a key in another form.
func namesNoPath(variable string, err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return &KeyError{Source: variable, Problem: "it is no PEM, and names no file that can be read (its value is not shown)", Err: path.Err}
	}
	return err
}
