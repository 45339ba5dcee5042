package token

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"superstep.dev/approval"
)

// body is a token's payload. It is read strictly: a claim that is not listed may restrict what the token is good for.
// Times are whole seconds since 1970.
type body struct {
	ID         string `json:"jti"`
	Audience   string `json:"aud"`
	Subject    string `json:"sub"` // the approver
	Thread     string `json:"thread"`
	Question   string `json:"question"`
	Digest     string `json:"digest"`
	ParamsHash string `json:"params_hash"`
	IssuedAt   int64  `json:"iat"`
	ExpiresAt  int64  `json:"exp"`
	unread
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *body) UnmarshalJSON(text []byte) error {
	type plain body
	return strictly(text, (*plain)(b))
}

// unread has the methods of jwt.Claims, which the parser does not ask: times and audiences are checked here.
type unread struct {
	jwt.RegisteredClaims `json:"-"`
}

// strictly reads a payload that has no field which it does not know.
func strictly(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

const (
	// MaxToken is the most bytes that a token has.
	MaxToken = 4096

	audience  = "superstep"
	tokenType = "superstep-approval+jwt" // RFC 8725, section 3.11: no token of another kind passes for one of these
)

// Verify implements [approval.Keys]. It takes nothing but what a [Signer] makes: the algorithm EdDSA, a key id and type,
// no other header, the audience "superstep", no claim that it does not know, every claim bounded, and a life of at most
// approval.MaxTokenLife. Whether the token's time is over, and whether its key signs for the approver, is left to the
// caller.
func (k *Keyring) Verify(token string) (approval.Claims, error) {
	if len(token) > MaxToken {
		return approval.Claims{}, refuse(approval.CodeMalformed, "", "the token is too long")
	}
	var b body
	key, id, err := k.signed(token, tokenType, &b, k.now)
	if err != nil {
		return approval.Claims{}, refused(err, id)
	}
	claims, problem := b.claims()
	if problem != "" {
		return approval.Claims{}, refuse(approval.CodeMalformed, id, problem)
	}
	claims.KeyID, claims.Owner = key.ID, key.Owner
	return claims, nil
}

// signed reads what was signed as of that type, and returns the key and its id: one that is active at a time which may follow
// from the claims.
func (k *Keyring) signed(text, typ string, claims jwt.Claims, at func() time.Time) (key Key, id string, err error) {
	parser := jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation())
	_, err = parser.ParseWithClaims(text, claims, func(t *jwt.Token) (any, error) {
		var err error
		if id, err = checkHeader(t.Header, typ); err == nil {
			key, err = k.key(id, at())
		}
		return key.Public, err
	})
	return key, id, err
}

// refused words what the parser says: its own text may quote the token.
func refused(err error, id string) error {
	if e, ok := errors.AsType[*approval.TokenError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*KeyError](err); ok {
		return e
	}
	if errors.Is(err, jwt.ErrTokenSignatureInvalid) {
		return refuse(approval.CodeSignature, id, "the token's signature is not that of the key that it names")
	}
	return refuse(approval.CodeMalformed, id, "the token cannot be read: it is a JWT in compact form")
}

func refuse(code approval.Code, key, reason string) error {
	return &approval.TokenError{Code: code, Key: key, Reason: reason}
}

// checkHeader returns the key's id of what is signed as of that type. A header that it does not know may change what the token means (RFC 7515, "crit") or
// where keys come from ("jwk", "jku", "x5u").
func checkHeader(header map[string]any, typ string) (string, error) {
	for name := range header {
		if name != "alg" && name != "kid" && name != "typ" {
			return "", refuse(approval.CodeMalformed, "", "the token has a header that is none of alg, kid, typ")
		}
	}
	if header["typ"] != typ {
		return "", refuse(approval.CodeMalformed, "", "the token is of another type than "+typ)
	}
	id, _ := header["kid"].(string)
	if !keyID.MatchString(id) {
		return "", refuse(approval.CodeMalformed, "", "the token does not say by which key it is signed (kid)")
	}
	return id, nil
}

// claims returns what the body says, or what is wrong with it.
func (b body) claims() (approval.Claims, string) {
	c := approval.Claims{
		ID: b.ID, Thread: b.Thread, Question: b.Question, Approver: b.Subject, Digest: b.Digest, ParamsHash: b.ParamsHash,
		IssuedAt: time.Unix(b.IssuedAt, 0).UTC(), ExpiresAt: time.Unix(b.ExpiresAt, 0).UTC(),
	}
	if b.Audience != audience {
		return approval.Claims{}, "the token is for another audience than " + audience
	}
	return c, problemOf(c)
}

// problemOf says what is wrong with claims that are signed or were read, "" for nothing.
func problemOf(c approval.Claims) string {
	const most = 300 // bytes: ids of questions hold a path
	for _, claim := range []struct{ name, value string }{
		{"jti", c.ID}, {"sub", c.Approver}, {"thread", c.Thread}, {"question", c.Question}, {"digest", c.Digest}, {"params_hash", c.ParamsHash},
	} {
		if claim.value == "" {
			return "the claim " + claim.name + " is missing"
		}
		if len(claim.value) > most {
			return "the claim " + claim.name + " is too long"
		}
	}
	switch life := c.ExpiresAt.Sub(c.IssuedAt); {
	case c.IssuedAt.Year() < 2000 || c.IssuedAt.Year() > 9999 || c.ExpiresAt.Year() > 9999:
		return "the claims iat and exp are no times"
	case life <= 0 || life > approval.MaxTokenLife:
		return "a token is valid for more than nothing and at most " + approval.MaxTokenLife.String()
	}
	return ""
}
