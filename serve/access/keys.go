package access

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"superstep.dev/internal/files"
)

// Key is who has a key, and what is kept of it: the key itself is nowhere.
type Key struct {
	// ID is eight hex digits, which the key begins with.
	ID string
	// Identity has the name and the permissions of who has it.
	Identity
	Made time.Time
	hash [sha256.Size]byte
}

// keyPrefix begins all keys: programs that look for lost secrets know them by it.
const keyPrefix = "superstep_"

// secretSize is how many random bytes a key has. No hash that takes long is needed: nobody guesses one of so many.
const secretSize = 32

// NewKey makes a key for somebody. The secret is what requests carry; it is not seen again.
func NewKey(who Identity, now time.Time) (k Key, secret string, err error) {
	if err := who.Check(); err != nil || strings.ContainsAny(who.Name, " \t") || strings.HasPrefix(who.Name, "#") {
		return k, "", errors.New("a name has 1 to 200 bytes, no spaces, no control characters, and no # in front")
	}
	var random [4 + secretSize]byte
	if _, err := rand.Read(random[:]); err != nil {
		return k, "", err
	}
	k = Key{ID: hex.EncodeToString(random[:4]), Identity: who, Made: now.UTC().Truncate(time.Second)}
	secret = keyPrefix + k.ID + "_" + hex.EncodeToString(random[4:])
	k.hash = sha256.Sum256([]byte(secret))
	return k, secret, nil
}

// keysHead begins a file of keys.
const keysHead = "# Keys of superstep serve, one a line: id, name, SHA-256 of the key, when it was made, permissions.\n"

// KeysText is what a file of keys holds: no key, but what one is known by.
func KeysText(keys []Key) []byte {
	out := []byte(keysHead)
	for _, k := range keys {
		fields := append([]string{k.ID, k.Name, "sha256:" + hex.EncodeToString(k.hash[:]), k.Made.Format(time.RFC3339)}, k.Permissions...)
		out = append(append(out, strings.Join(fields, " ")...), '\n')
	}
	return out
}

// ParseKeys reads what a file of keys holds.
func ParseKeys(text []byte) (keys []Key, err error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		k, err := parseKey(strings.Fields(line))
		if err == nil && slices.ContainsFunc(keys, func(other Key) bool { return other.ID == k.ID }) {
			err = errors.New("another key has the same id")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err) // without the line, which may be a key that was put there by mistake
		}
		keys = append(keys, k)
	}
	return keys, lines.Err()
}

func parseKey(fields []string) (k Key, err error) {
	if len(fields) < 4 {
		return k, errors.New("it has less than four fields: id, name, sha256:HASH, and when it was made")
	}
	hash, isHash := strings.CutPrefix(fields[2], "sha256:")
	sum, bad := hex.DecodeString(hash)
	if !isHash || bad != nil || len(sum) != sha256.Size {
		return k, errors.New("the third field is not sha256: and 64 hex digits")
	}
	k = Key{ID: fields[0], Identity: Identity{Name: fields[1], Permissions: fields[4:]}, hash: [sha256.Size]byte(sum)}
	if k.Made, err = time.Parse(time.RFC3339, fields[3]); err != nil {
		return k, errors.New("the fourth field is no time such as 2026-01-31T09:00:00Z")
	}
	return k, k.Check()
}

// Keys knows callers by keys, in the header X-Api-Key or as a bearer token.
type Keys struct {
	watched *files.Watched[[]Key]
}

// KeysIn reads a file of keys. It is read again while it is used, so a key that is taken out is good no more within a second. No key is
// good while the file cannot be read: see [Keys.Problem].
//
// Errors: a file that cannot be read, or holds no keys.
func KeysIn(file string) (*Keys, error) {
	k := &Keys{&files.Watched[[]Key]{Paths: []string{file}, Make: func(all []files.File) ([]Key, error) {
		if len(all) != 1 {
			return nil, errors.New("it is a directory, and no file of keys")
		}
		return ParseKeys(all[0].Text)
	}}}
	keys, _, err := k.watched.Get()
	if err == nil && len(keys) == 0 {
		err = errors.New("there is no key in it")
	}
	if err != nil {
		return nil, fmt.Errorf("the keys in %s cannot be used: %w", file, err)
	}
	return k, nil
}

// Has reports whether somebody of that name has a key.
func (k *Keys) Has(name string) bool {
	keys, _, _ := k.watched.Get()
	return slices.ContainsFunc(keys, func(one Key) bool { return one.Name == name })
}

// Problem says why the file as it is now cannot be used, nil when it can.
func (k *Keys) Problem() error {
	_, _, err := k.watched.Get()
	return err
}

// Authenticate is an [Authenticate].
func (k *Keys) Authenticate(r *http.Request) (Identity, error) {
	given := r.Header.Get("X-Api-Key")
	// Clients send a key of another service along that they find in their environment: beside a bearer token it is none.
	if bearer := bearerOf(r); bearer != "" && !strings.HasPrefix(given, keyPrefix) {
		given = ""
		if strings.HasPrefix(bearer, keyPrefix) {
			given = bearer
		}
	}
	if given == "" {
		return Identity{}, ErrNoCredential
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(given, keyPrefix), "_")
	sum := sha256.Sum256([]byte(given))
	keys, _, err := k.watched.Get()
	if err != nil {
		return Identity{}, fmt.Errorf("the keys of clients cannot be read: %w", err)
	}
	for _, one := range keys {
		if one.ID == id && subtle.ConstantTimeCompare(one.hash[:], sum[:]) == 1 {
			return one.Identity, nil
		}
	}
	return Identity{}, fmt.Errorf("%w: there is no such key", ErrUnauthenticated)
}

// bearerOf is the bearer token of a request, "" for none.
func bearerOf(r *http.Request) string {
	scheme, given, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(given)
}
