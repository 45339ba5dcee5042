// Package webhook tells people outside of questions, warnings and deadlines by posting them to URLs: to a chat, a pager, a
// service of one's own.
//
// Each notice is a POST of an [approval.Notice] as JSON, with the three headers of the Standard Webhooks specification: a
// receiver in any language finds a library that verifies them. "webhook-id" is the notice's ID: a receiver that keeps those
// it has seen takes each notice once. In Go, [Verify] does the checks.
package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"superstep.dev/approval"
)

const (
	// callTimeout bounds one POST, its redirects and its reply included.
	callTimeout = 10 * time.Second
	// maxRedirects bounds the redirects of one POST; they stay on its host.
	maxRedirects = 3
	// maxReply bounds what is read of a reply before its connection is used again, in bytes.
	maxReply = 4 << 10
	// MaxURLs bounds the receivers of one Notifier.
	MaxURLs = 20
)

// Config is what a [Notifier] posts to.
type Config struct {
	// URLs are the receivers, http or https. Each gets every notice.
	URLs []string
	// Secret signs what is posted: "whsec_" and base64 of 24 to 64 bytes, as the specification has it.
	Secret string
	// Link makes the address at which a person answers, with {thread} and {question} in their places; "" for none.
	Link string
	// Transport makes the connections; nil means http.DefaultTransport.
	Transport http.RoundTripper
}

// Notifier posts notices to URLs. It is safe for concurrent use.
type Notifier struct {
	urls    map[string]string // by target
	targets []string
	sign    *standardwebhooks.Webhook
	link    string
	client  *http.Client
}

// New returns a Notifier, or an error that says which part of the configuration is no use, and no secret.
func New(c Config) (*Notifier, error) {
	sign, err := signer(c.Secret)
	if err != nil {
		return nil, err
	}
	if len(c.URLs) == 0 || len(c.URLs) > MaxURLs {
		return nil, fmt.Errorf("webhook: there are %d URLs: want 1 to %d", len(c.URLs), MaxURLs)
	}
	n := &Notifier{urls: map[string]string{}, sign: sign, link: c.Link,
		client: &http.Client{Transport: c.Transport, Timeout: callTimeout, CheckRedirect: sameHost}}
	for i, raw := range c.URLs {
		u, err := url.Parse(raw)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, fmt.Errorf("webhook: URL %d is no http or https URL", i+1)
		}
		target := targetName(u)
		if slices.Contains(n.targets, target) {
			return nil, fmt.Errorf("webhook: URL %d is given twice", i+1)
		}
		n.urls[target], n.targets = raw, append(n.targets, target)
	}
	return n, nil
}

// Targets implements [approval.Notifier]: the hosts, with a short hash where the rest of a URL may be a secret.
func (n *Notifier) Targets() []string { return slices.Clone(n.targets) }

// posted is what a receiver gets.
type posted struct {
	approval.Notice
	URL string `json:"url,omitempty"`
}

// Notify implements [approval.Notifier]. A receiver has the notice when it answers with a status of 200 to 299. Another
// status from 400 on is a [*RefusedError], permanent but for 408, 409, 425, 429 and those from 500 on.
func (n *Notifier) Notify(ctx context.Context, target string, notice approval.Notice) error {
	to, ok := n.urls[target]
	if !ok {
		return &RefusedError{Target: target, Message: "it is no receiver any more", gone: true}
	}
	body, err := json.Marshal(posted{notice, n.linkTo(notice)})
	if err != nil {
		return fmt.Errorf("webhook: encode the notice: %w", err)
	}
	request, err := n.request(ctx, to, notice.ID, body)
	if err != nil {
		return fmt.Errorf("webhook: %s: %w", target, bare(err))
	}
	response, err := n.client.Do(request)
	if err != nil {
		return fmt.Errorf("webhook: %s: no answer: %w", target, bare(err))
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxReply) // its status counts
	if response.StatusCode >= 200 && response.StatusCode < 300 {
		return nil
	}
	return &RefusedError{Target: target, Status: response.StatusCode, Message: "it refused the notice"}
}

func (n *Notifier) request(ctx context.Context, to, id string, body []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	signature, err := n.sign.Sign(id, now, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "superstep")
	request.Header.Set(standardwebhooks.HeaderWebhookID, id)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	return request, nil
}

var errElsewhere = errors.New("it redirects to another host, which is not followed")

// sameHost follows redirects on the same host only, and never from https to http: what is posted is for nobody else.
func sameHost(to *http.Request, via []*http.Request) error {
	from := via[0].URL
	switch {
	case to.URL.Host != from.Host || from.Scheme == "https" && to.URL.Scheme != "https":
		return errElsewhere
	case len(via) > maxRedirects:
		return fmt.Errorf("it redirects more than %d times", maxRedirects)
	case to.Method != http.MethodPost:
		return errors.New("it redirects to a page: a receiver answers the POST itself, or with status 307 or 308")
	}
	return nil
}

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
