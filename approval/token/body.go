package token

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/golang-jwt/jwt/v5"
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
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *body) UnmarshalJSON(text []byte) error {
	type plain body
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	return dec.Decode((*plain)(b))
}

// The methods of jwt.Claims. The parser does not check them; the times are those of the body all the same.

// GetExpirationTime implements jwt.Claims.
func (b *body) GetExpirationTime() (*jwt.NumericDate, error) {
	return jwt.NewNumericDate(time.Unix(b.ExpiresAt, 0)), nil
}

// GetIssuedAt implements jwt.Claims.
func (b *body) GetIssuedAt() (*jwt.NumericDate, error) {
	return jwt.NewNumericDate(time.Unix(b.IssuedAt, 0)), nil
}

// GetNotBefore implements jwt.Claims.
func (b *body) GetNotBefore() (*jwt.NumericDate, error) { return b.GetIssuedAt() }

// GetIssuer implements jwt.Claims.
func (b *body) GetIssuer() (string, error) { return "", nil }

// GetSubject implements jwt.Claims.
func (b *body) GetSubject() (string, error) { return b.Subject, nil }

// GetAudience implements jwt.Claims.
func (b *body) GetAudience() (jwt.ClaimStrings, error) { return jwt.ClaimStrings{b.Audience}, nil }
