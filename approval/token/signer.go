package token

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"superstep.dev/approval"
	"superstep.dev/internal/files"
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

const (
	// EnvAuditKey is the private key that a worker signs audits with, as PEM, or the file that holds it; EnvAuditKeys are
	// the public keys that exports are verified with, as [EnvKeys].
	EnvAuditKey  = "SUPERSTEP_AUDIT_KEY"
	EnvAuditKeys = "SUPERSTEP_AUDIT_KEYS"

	headAudience = "superstep-audit"
	headType     = "superstep-audit+jwt" // no approval passes for a head, and no head for an approval
)

// headBody is the payload of a signed head, read as strictly as a token's.
type headBody struct {
	Audience string `json:"aud"`
	Thread   string `json:"thread"`
	Count    int    `json:"count"`
	Head     string `json:"head"`
	IssuedAt int64  `json:"iat"`
	unread
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *headBody) UnmarshalJSON(text []byte) error {
	type plain headBody
	return strictly(text, (*plain)(b))
}

var (
	_ approval.HeadSigner = (*Signer)(nil)
	_ approval.HeadKeys   = (*Keyring)(nil)
)

// SignHead implements [approval.HeadSigner]. The error is an [*approval.InvalidError] when the key is no worker's (the
// header Worker), or the head has no thread.
func (s *Signer) SignHead(h approval.Head) (string, error) {
	if s.owner.Worker == "" {
		return "", &approval.InvalidError{Of: "head", Problem: fmt.Sprintf("the key %s is %s: audits are signed with a key that has the header %s",
			s.id, s.owner, headerWorker)}
	}
	if h.Thread == "" || h.Count < 0 {
		return "", &approval.InvalidError{Of: "head", Problem: "it is of no thread"}
	}
	if h.At.IsZero() {
		h.At = clock(s.Now)
	}
	return s.sign(headType, &headBody{Audience: headAudience, Thread: h.Thread, Count: h.Count, Head: h.Head, IssuedAt: h.At.Unix()})
}

// VerifyHead implements [approval.HeadKeys]. A key that was retired verifies what it signed before: take a key out that has
// leaked, because whoever has it can date a head back.
func (k *Keyring) VerifyHead(signed string) (approval.Head, error) {
	if len(signed) > MaxToken {
		return approval.Head{}, refuse(approval.CodeMalformed, "", "the signed head is too long")
	}
	var b headBody
	key, id, err := k.signed(signed, headType, &b, func() time.Time { return time.Unix(b.IssuedAt, 0) }) // when it says to have been signed
	if err != nil {
		return approval.Head{}, headRefused(err, id)
	}
	switch {
	case b.Audience != headAudience || b.Thread == "" || b.Count < 0:
		return approval.Head{}, refuse(approval.CodeMalformed, key.ID, "the signed head is of no thread's audit")
	case key.Owner.Worker == "":
		return approval.Head{}, refuse(approval.CodeWrongKey, key.ID, fmt.Sprintf("the key %s is %s, and a worker's signs audits", key.ID, key.Owner))
	}
	return approval.Head{Thread: b.Thread, Chain: approval.Chain{Count: b.Count, Head: b.Head}, At: time.Unix(b.IssuedAt, 0).UTC(),
		KeyID: key.ID, Worker: key.Owner.Worker}, nil
}

// headRefused words what is wrong with a signed head.
func headRefused(err error, id string) error {
	worded := refused(err, id)
	bad, ok := errors.AsType[*approval.TokenError](worded)
	if !ok {
		return worded
	}
	reason := "the audit has a head that cannot be read"
	switch {
	case bad.Code == approval.CodeRetiredKey:
		reason = "the audit's head is signed by the key " + id + ", which had been retired by then"
	case bad.Code == approval.CodeSignature && errors.Is(err, jwt.ErrTokenSignatureInvalid):
		reason = "the audit's head is not what the key " + id + " has signed"
	case bad.Code == approval.CodeSignature:
		reason = "the audit's head is signed by the key " + id + ", which is not among those that are trusted here"
	}
	return refuse(bad.Code, id, reason)
}

// AuditSigner returns the signer of a worker's audits: of the key in file, or of what [EnvAuditKey] says when file is "". It
// is nil when neither names a key. A key that is no worker's is a [*KeyError].
func AuditSigner(file string) (*Signer, error) {
	source := cmp.Or(file, EnvAuditKey)
	var s *Signer
	var err error
	if file != "" {
		s, err = LoadSigner(file)
	} else if s, err = signerFromEnv(EnvAuditKey); errors.Is(err, ErrUnset) {
		return nil, nil
	}
	if err == nil && s.owner.Worker == "" {
		err = &KeyError{Source: source, Problem: fmt.Sprintf("the key %s is %s: audits are signed with a key that has the header \"%s: NAME\"",
			s.id, s.owner, headerWorker)}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// AuditKeys returns the public keys that exported audits are verified with: those in files and directories, separated as in
// PATH, or what [EnvAuditKeys] says when files is "". The error holds [ErrUnset] when neither names any.
func AuditKeys(paths string) (*Keyring, error) {
	if paths != "" {
		return Open(filepath.SplitList(paths)...)
	}
	return fromEnv(EnvAuditKeys)
}
