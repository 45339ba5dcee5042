package graphtest

import (
	"encoding/json"
	"time"

	"superstep.dev/approval"
	"superstep.dev/thread"
)

// Token returns a token with which the approver answers a question of the thread, on a runtime of [Runtimes] or [Temporal]: the gate
// of their worker takes it for what it says, and knows no policy. No other gate takes it.
func Token(thread string, q thread.Question, approver string) string {
	now := time.Now()
	claims := approval.Claims{ID: thread + "/" + q.ID + "/" + approver, Thread: thread, Question: q.ID, Approver: approver,
		IssuedAt: now, ExpiresAt: now.Add(approval.MaxTokenLife)}
	if q.Approval != nil {
		claims.Digest, claims.ParamsHash = q.Approval.Digest, q.Approval.ParamsHash
	}
	text, _ := json.Marshal(claims) // strings and times always encode
	return string(text)
}

// unsigned are the keys of a test's gate.
type unsigned struct{}

// Verify implements approval.Keys.
func (unsigned) Verify(token string) (claims approval.Claims, err error) {
	if json.Unmarshal([]byte(token), &claims) != nil {
		return claims, &approval.TokenError{Code: approval.CodeMalformed, Reason: "the token is none of graphtest.Token"}
	}
	claims.KeyID, claims.Owner = issuer.Issuer, issuer
	return claims, nil
}

// issuer is whose key that is: everybody's.
var issuer = approval.Owner{Issuer: "graphtest"}

// Owner implements approval.Keys.
func (unsigned) Owner(string, time.Time) (approval.Owner, error) { return issuer, nil }
