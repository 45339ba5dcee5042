package webhook

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"superstep.dev/approval"
)

// The bounds of a secret, in bytes.
const (
	minSecret = 24
	maxSecret = 64
)

const secretPrefix = "whsec_"

var errSecret = fmt.Errorf("webhook: the secret is not %q and base64 of %d to %d bytes: make one with "+
	"printf '%s%%s\\n' \"$(openssl rand -base64 32)\"", secretPrefix, minSecret, maxSecret, secretPrefix)

// signer returns what signs and verifies with a secret. Its error never says what the secret is.
func signer(secret string) (*standardwebhooks.Webhook, error) {
	encoded, ok := strings.CutPrefix(secret, secretPrefix)
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(raw) < minSecret || len(raw) > maxSecret {
		return nil, errSecret
	}
	return standardwebhooks.NewWebhookRaw(raw)
}

// Verify returns the notice that was posted with these headers, when it was signed with the secret, for exactly this body,
// at most five minutes ago. The ID of the notice is the one that was signed: a receiver that has seen it drops it.
func Verify(secret string, header http.Header, body []byte) (approval.Notice, error) {
	sign, err := signer(secret)
	if err != nil {
		return approval.Notice{}, err
	}
	if err := sign.Verify(body, header); err != nil {
		return approval.Notice{}, fmt.Errorf("webhook: %w", err)
	}
	var n approval.Notice
	if err := json.Unmarshal(body, &n); err != nil {
		return approval.Notice{}, fmt.Errorf("webhook: the body is no notice: %w", err)
	}
	if n.ID != header.Get(standardwebhooks.HeaderWebhookID) {
		return approval.Notice{}, errors.New("webhook: the header is for another notice than the body")
	}
	return n, nil
}

// RefusedError says that a receiver does not take a notice.
type RefusedError struct {
	Target string
	// Status is the HTTP status, 0 when nothing was posted.
	Status  int
	Message string
	gone    bool
}

// Error names the receiver and its status, and nothing that it said.
func (e *RefusedError) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("webhook: %s: %s", e.Target, e.Message)
	}
	return fmt.Sprintf("webhook: %s: %s with status %d", e.Target, e.Message, e.Status)
}

// Permanent reports whether it would refuse the same notice again.
func (e *RefusedError) Permanent() bool {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return e.gone || e.Status >= 400 && e.Status < 500
}

// targetName is a URL without what may be a secret in it: a hash takes the place of its path and query.
func targetName(u *url.URL) string {
	sum := sha256.Sum256([]byte(u.String()))
	return u.Host + "#" + hex.EncodeToString(sum[:3])
}

// bare is an error of the HTTP client without the URL that it would name.
func bare(err error) error {
	var named *url.Error
	if errors.As(err, &named) {
		return named.Err
	}
	return err
}

// linkTo is the address at which a person answers.
func (n *Notifier) linkTo(notice approval.Notice) string {
	return strings.NewReplacer("{thread}", url.PathEscape(notice.Thread), "{question}", url.PathEscape(notice.Question)).Replace(n.link)
}
