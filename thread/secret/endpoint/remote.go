package endpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"

	"superstep.dev/thread/secret"
)

const (
	// answersWithin is how long an endpoint may take.
	answersWithin = 10 * time.Second
	// maxReply bounds what it says.
	maxReply = 4 * MaxBody
	// maxWhy bounds what is told of an endpoint's refusal.
	maxWhy = 300
)

// ErrEndpoint is the kind of errors of an endpoint that does not answer, or that refuses to.
var ErrEndpoint = errors.New("codec endpoint")

// Error says what is wrong with an endpoint, in one line. Its text has no credentials.
type Error struct {
	Where string
	// Problem is what the endpoint said, or why it said nothing.
	Problem string
}

func (e *Error) Error() string {
	return fmt.Sprintf("the codec endpoint %s cannot be asked (%s): check that it is there and takes TEMPORAL_CODEC_AUTH, or give the keys by --keys", e.Where, e.Problem)
}

// Unwrap lets errors.Is see the kind.
func (e *Error) Unwrap() error { return ErrEndpoint }

// Remote encodes and decodes by asking an endpoint, for who has no keys. Each value is a request, so it is for commands that people type.
type Remote struct {
	where           *url.URL
	auth, namespace string
	client          *http.Client
}

// Dial returns what asks the endpoint at a URL, with auth as the Authorization header, "" for none. It does not ask yet.
//
// Errors: a URL that is neither https nor of this machine: what it answers is secret.
func Dial(endpoint, auth, namespace string) (*Remote, error) {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the codec endpoint is not of the form https://HOST/PATH")
	case u.User != nil || u.RawQuery != "":
		return nil, errors.New("the codec endpoint's address has credentials: give them by TEMPORAL_CODEC_AUTH")
	case u.Scheme == "http" && !Loopback(u.Hostname()):
		return nil, errors.New("the codec endpoint is of another machine, and not https: what it says could be read on the way")
	}
	return &Remote{where: u, auth: auth, namespace: namespace, client: &http.Client{Timeout: answersWithin,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// Converter returns a data converter that asks the endpoint for what inner makes and reads; a nil inner is Temporal's default.
func (r *Remote) Converter(inner converter.DataConverter) converter.DataConverter {
	if inner == nil {
		inner = converter.GetDefaultDataConverter()
	}
	return converter.NewCodecDataConverter(inner, r)
}

// Encode implements converter.PayloadCodec.
func (r *Remote) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	if len(payloads) == 0 {
		return payloads, nil
	}
	return r.ask("encode", payloads)
}

// Decode implements converter.PayloadCodec. The endpoint is asked only when there is something that is encrypted.
func (r *Remote) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	for _, p := range payloads {
		if string(p.GetMetadata()[converter.MetadataEncoding]) == secret.Encoding {
			return r.ask("decode", payloads)
		}
	}
	return payloads, nil
}

func (r *Remote) ask(what string, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	body, err := protojson.Marshal(&commonpb.Payloads{Payloads: payloads})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodPost, r.where.JoinPath(what).String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Namespace", r.namespace)
	if r.auth != "" {
		req.Header.Set("Authorization", r.auth)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, r.trouble(reason(err))
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	switch {
	case err != nil:
		return nil, r.trouble(reason(err))
	case len(text) > maxReply:
		return nil, r.trouble("its answer is too large")
	case resp.StatusCode != http.StatusOK:
		return nil, r.trouble(fmt.Sprintf("%s: %s", resp.Status, strings.TrimSpace(string(text[:min(len(text), maxWhy)]))))
	}
	var out commonpb.Payloads
	if err := protojson.Unmarshal(text, &out); err != nil || len(out.Payloads) != len(payloads) {
		return nil, r.trouble("its answer is not that of a codec endpoint")
	}
	return out.Payloads, nil
}

func (r *Remote) trouble(problem string) error {
	return &Error{Where: r.where.String(), Problem: problem}
}

// reason is what went wrong on the way, without the address, which is told anyway.
func reason(err error) string {
	var sent *url.Error
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		return fmt.Sprintf("no answer within %v", answersWithin)
	}
	if errors.As(err, &sent) {
		err = sent.Err
	}
	return err.Error()
}
