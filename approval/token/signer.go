package token

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"superstep.dev/approval"
	"superstep.dev/approval/internal/files"
)

// DefaultLife is how long a token is valid that does not say.
const DefaultLife = 10 * time.Minute

// Signer signs tokens with one private key. Its methods may be called from several goroutines.
type Signer struct {
	// Now is the clock; nil means time.Now. Set it before the signer is used.
	Now func() time.Time

	id    string
	owner approval.Owner
	key   ed25519.PrivateKey
}

// ParseSigner returns a signer of the one private key in a PEM text.
func ParseSigner(text []byte) (*Signer, error) { return signerOf("the program", text) }

// LoadSigner returns a signer of the one private key in a PEM file, which its owner alone may read.
func LoadSigner(path string) (*Signer, error) {
	all, err := files.Read([]string{path})
	if err != nil || len(all) != 1 {
		return nil, &KeyError{Source: path, Problem: "it cannot be read as one file", Err: err}
	}
	if err := checkMode(all[0]); err != nil {
		return nil, err
	}
	return signerOf(path, all[0].Text)
}

// SignerFromEnv returns a signer of what [EnvSigningKey] says. The error holds [ErrUnset] when it is not set.
func SignerFromEnv() (*Signer, error) { return signerFromEnv(EnvSigningKey) }

func signerFromEnv(variable string) (*Signer, error) {
	value := os.Getenv(variable)
	if value == "" {
		return nil, &KeyError{Source: variable, Problem: "no key", Err: ErrUnset}
	}
	if isPEM(value) {
		return signerOf(variable, []byte(value))
	}
	s, err := LoadSigner(value)
	return s, namesNoPath(variable, err)
}

func signerOf(source string, text []byte) (*Signer, error) {
	all, err := parse(text)
	if err == nil && (len(all) != 1 || all[0].private == nil) {
		err = errors.New("one private key is needed, and nothing else")
	}
	if err != nil {
		return nil, &KeyError{Source: source, Problem: "it cannot be used", Err: err}
	}
	return &Signer{id: all[0].ID, owner: all[0].Owner, key: all[0].private}, nil
}

// Key returns the public key that verifies what the signer signs.
func (s *Signer) Key() Key {
	return Key{ID: s.id, Owner: s.owner, Public: s.key.Public().(ed25519.PublicKey)}
}

// String implements fmt.Stringer without the private key.
func (s *Signer) String() string { return "signer with key " + s.id }

// GoString implements fmt.GoStringer, as String.
func (s *Signer) GoString() string { return s.String() }

// Sign returns a token. A zero IssuedAt means now, a zero ExpiresAt [DefaultLife] later, an empty ID a random one; times
// are whole seconds. The error is an [*approval.InvalidError]: a claim is missing or too long, the life is longer than
// approval.MaxTokenLife, or the key is another person's, so that no gate would take the token.
func (s *Signer) Sign(c approval.Claims) (string, error) {
	if c.IssuedAt.IsZero() {
		c.IssuedAt = clock(s.Now)
	}
	if c.ExpiresAt.IsZero() {
		c.ExpiresAt = c.IssuedAt.Add(DefaultLife)
	}
	c.IssuedAt, c.ExpiresAt = c.IssuedAt.Truncate(time.Second), c.ExpiresAt.Truncate(time.Second)
	if c.ID == "" {
		c.ID = rand.Text()
	}
	if problem := problemOf(c); problem != "" {
		return "", &approval.InvalidError{Of: "token", Problem: problem}
	}
	if s.owner.Worker != "" {
		return "", &approval.InvalidError{Of: "token", Problem: fmt.Sprintf("the key %s is %s, which signs audits and nothing else", s.id, s.owner)}
	}
	if p := s.owner.Person; p != "" && p != c.Approver {
		return "", &approval.InvalidError{Of: "token", Problem: fmt.Sprintf("the key %s is %s, and signs for nobody else: not for %.100q", s.id, s.owner, c.Approver)}
	}
	return s.sign(tokenType, &body{
		ID: c.ID, Audience: audience, Subject: c.Approver, Thread: c.Thread, Question: c.Question, Digest: c.Digest,
		ParamsHash: c.ParamsHash, IssuedAt: c.IssuedAt.Unix(), ExpiresAt: c.ExpiresAt.Unix(),
	})
}

func (s *Signer) sign(typ string, claims jwt.Claims) (string, error) {
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
	t.Header["kid"], t.Header["typ"] = s.id, typ
	return t.SignedString(s.key)
}
