package secret

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// MaxKeys bounds a [Ring].
	MaxKeys = 100
	// MaxRingBytes bounds the text of a Ring.
	MaxRingBytes = 64 << 10
	// maxID is how long the id of a key is at most.
	maxID = 64
)

// ids are what keys are called.
var ids = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9][A-Za-z0-9._-]{0,%d}$`, maxID-1))

// Key is one key of a [Ring]. Its bytes are shown by nothing but [Ring.Text].
type Key struct {
	// ID stands in the metadata of each payload that is encrypted with the key.
	ID string
	// Made is when the key was made, and From when it begins to write.
	Made, From time.Time

	// bytes is a pointer so that whoever prints a struct with a Key in it prints an address.
	bytes *[keyBytes]byte
}

// String is the key's id.
func (k Key) String() string { return k.ID }

// Format implements fmt.Formatter: whatever the verb is, no byte of the key is shown.
func (k Key) Format(to fmt.State, _ rune) { _, _ = io.WriteString(to, k.ID) }

// Ring is what a key file holds. The zero value has no keys.
type Ring struct{ keys []Key }

// ringText is a Ring as it is written.
type ringText struct {
	Keys []keyText `json:"keys"`
}

type keyText struct {
	ID   string    `json:"id"`
	Made time.Time `json:"made"`
	From time.Time `json:"writes_from"`
	Key  string    `json:"key"`
}

// ParseRing reads a key file's text:
//
//	{"keys": [{"id": "k-1", "made": "2026-03-01T09:00:00Z", "writes_from": "2026-03-01T09:00:00Z", "key": "…32 bytes in base64…"}]}
//
// A field that is not one of these, an id that is there twice, the same bytes under two ids, bytes that are all the same, and no keys at all
// are refused. Errors say where in the text, and show nothing of it.
func ParseRing(text []byte) (Ring, error) {
	if len(text) > MaxRingBytes {
		return Ring{}, fmt.Errorf("they have more than %d bytes", MaxRingBytes)
	}
	var all ringText
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		return Ring{}, notRight(d, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Ring{}, errors.New("something follows the keys")
	}
	if len(all.Keys) == 0 || len(all.Keys) > MaxKeys {
		return Ring{}, fmt.Errorf("there are %d keys, not 1 to %d", len(all.Keys), MaxKeys)
	}
	var r Ring
	for i, text := range all.Keys {
		k, err := text.key()
		if err == nil {
			err = r.add(k)
		}
		if err != nil {
			return Ring{}, fmt.Errorf("key %d of %d: %w", i+1, len(all.Keys), err)
		}
	}
	return r, nil
}

// notRight says where a text is not right: the parser's own words may quote it.
func notRight(d *json.Decoder, err error) error {
	var value *json.UnmarshalTypeError
	switch {
	case errors.As(err, &value):
		return fmt.Errorf("the field %q has a value of the wrong kind, at byte %d", value.Field, value.Offset)
	case strings.HasPrefix(err.Error(), "json: unknown field"):
		return fmt.Errorf("a field is none of keys, id, made, writes_from and key, before byte %d", d.InputOffset())
	case strings.HasPrefix(err.Error(), "parsing time"):
		return errors.New("a time is not of the form 2026-03-01T09:00:00Z")
	}
	return errors.New("they are not the JSON that superstep keys new writes")
}

func (t keyText) key() (Key, error) {
	k := Key{ID: t.ID, Made: t.Made, From: t.From}
	raw, err := base64.StdEncoding.Strict().DecodeString(t.Key)
	switch {
	case !ids.MatchString(t.ID):
		return k, fmt.Errorf("its id is not 1 to %d letters, digits, dots, dashes and underscores", maxID)
	case err != nil || len(raw) != keyBytes:
		return k, fmt.Errorf("%s is not %d bytes in base64", t.ID, keyBytes)
	case t.Made.IsZero() || t.From.IsZero():
		return k, fmt.Errorf("%s lacks made or writes_from", t.ID)
	}
	k.bytes = (*[keyBytes]byte)(raw)
	if bytes.Count(raw, raw[:1]) == keyBytes {
		return k, fmt.Errorf("%s is no random key: all its bytes are the same", t.ID)
	}
	return k, nil
}

// add keeps the keys in the order in which they write.
func (r *Ring) add(k Key) error {
	for _, other := range r.keys {
		if other.ID == k.ID {
			return fmt.Errorf("%s is there twice", k.ID)
		}
		if subtle.ConstantTimeCompare(other.bytes[:], k.bytes[:]) == 1 {
			return fmt.Errorf("%s and %s are the same key", other.ID, k.ID)
		}
	}
	r.keys = append(r.keys, k)
	slices.SortStableFunc(r.keys, func(a, b Key) int { return a.From.Compare(b.From) })
	return nil
}

// Keys returns the keys, those that write later behind the others.
func (r Ring) Keys() []Key { return slices.Clone(r.keys) }

// Writes is the key that writes at a time: the newest of those that write by then. Before all of them, as with a clock that is wrong, it
// is the oldest. ok is false for a Ring without keys.
func (r Ring) Writes(at time.Time) (k Key, ok bool) {
	for i, key := range r.keys {
		if i == 0 || !key.From.After(at) {
			k, ok = key, true
		}
	}
	return k, ok
}

// Rotate returns a Ring with a new random key, which writes from a time on. Until then every process that reads payloads has to have
// read the new Ring. An id of "" is made of the day and chance.
func (r Ring) Rotate(id string, now, from time.Time) (Ring, Key, error) {
	k := Key{ID: id, Made: now.UTC().Truncate(time.Second), From: from.UTC().Truncate(time.Second), bytes: new([keyBytes]byte)}
	if k.ID == "" {
		k.ID = "k-" + k.Made.Format("20060102") + "-" + strings.ToLower(rand.Text()[:8])
	}
	if !ids.MatchString(k.ID) {
		return r, Key{}, fmt.Errorf("the id is not 1 to %d letters, digits, dots, dashes and underscores", maxID)
	}
	if len(r.keys) == MaxKeys {
		return r, Key{}, fmt.Errorf("there are %d keys, the most", MaxKeys)
	}
	_, _ = rand.Read(k.bytes[:]) // it never fails
	with := Ring{keys: slices.Clone(r.keys)}
	return with, k, with.add(k)
}

// Without returns a Ring without a key, for one of whose payloads nothing is needed any more. The key that writes at a time stays.
func (r Ring) Without(id string, at time.Time) (Ring, error) {
	i := slices.IndexFunc(r.keys, func(k Key) bool { return k.ID == id })
	if i < 0 {
		return r, fmt.Errorf("there is no key %.64q", id)
	}
	if writes, _ := r.Writes(at); writes.ID == id {
		return r, fmt.Errorf("%s writes: rotate first", id)
	}
	return Ring{keys: slices.Delete(slices.Clone(r.keys), i, i+1)}, nil
}

// Format implements fmt.Formatter: whatever the verb is, no byte of a key is shown.
func (r Ring) Format(to fmt.State, _ rune) { _, _ = fmt.Fprint(to, r.ids()) }

// Text is the text of a key file, with the bytes of the keys.
func (r Ring) Text() []byte {
	all := ringText{Keys: make([]keyText, len(r.keys))}
	for i, k := range r.keys {
		all.Keys[i] = keyText{ID: k.ID, Made: k.Made, From: k.From, Key: base64.StdEncoding.EncodeToString(k.bytes[:])}
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		panic(err) // texts and times always encode
	}
	return append(text, '\n')
}

// ids are the ids of a Ring's keys.
func (r Ring) ids() []string {
	out := make([]string, len(r.keys))
	for i, k := range r.keys {
		out[i] = k.ID
	}
	return out
}
