package approval

import "time"

// MaxTokenLife is the longest that a token may be valid.
const MaxTokenLife = time.Hour

// Claims are what a token says: who may answer which question about which parameters.
type Claims struct {
	ID       string // unique: a token is used once
	Thread   string
	Question string
	Approver string
	// Digest is the action's, see [Action.Digest], and ParamsHash its parameters'.
	Digest     string
	ParamsHash string
	IssuedAt   time.Time
	ExpiresAt  time.Time
	// KeyID is the key that signed the token, and Owner whose it is: both are what [Keys] knows, not what the token says.
	KeyID string
	Owner Owner
}

// Keys verify tokens, which superstep.dev/approval/token signs and reads.
type Keys interface {
	// Verify returns what a token claims when a key that is active signed it, and whose key that is; its times, and
	// whether the key may sign for the approver, are left to the caller. The error is a [*TokenError], or one that says
	// why the keys cannot be read: then nobody knows.
	Verify(token string) (Claims, error)
	// Owner returns whose that key is, if it was active at that time. The error is as Verify's.
	Owner(keyID string, at time.Time) (Owner, error)
}

// TokenError says why a token cannot be believed. It never holds the token.
type TokenError struct {
	Code Code // CodeMalformed, CodeSignature or CodeRetiredKey
	// Key is the id of the key that the token names, "" for none.
	Key    string
	Reason string
}

// Error implements error.
func (e *TokenError) Error() string { return e.Reason }
