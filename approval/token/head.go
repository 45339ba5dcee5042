package token

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"superstep.dev/approval"
)

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
