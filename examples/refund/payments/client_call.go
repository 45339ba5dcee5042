package payments

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxResponseBody bounds what is read of any answer.
const maxResponseBody = 4 << 20

// maxErrorText bounds how much of a foreign error page goes into a message.
const maxErrorText = 200

// call is one request to the service.
type call struct {
	method string
	path   string // escaped
	query  url.Values
	key    string
	body   any
}

// op names the call in errors, without the query: keys stay out of logs that
// only want to know what failed.
func (c call) op() string { return c.method + " " + c.path }

// do makes the call and decodes a 2xx answer into into, unless that is nil.
func (c *Client) do(ctx context.Context, in call, into any) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultTimeout)
		defer cancel()
	}
	request, err := c.request(ctx, in)
	if err != nil {
		return fmt.Errorf("payments: %s: %w", in.op(), err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return &UnavailableError{Op: in.op(), Err: err}
	}
	defer response.Body.Close()
	data, err := readBounded(response.Body)
	if err != nil {
		return &UnavailableError{Op: in.op(), Status: response.StatusCode, Err: err}
	}
	if err := judge(in.op(), response.StatusCode, data); err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		// It may well have committed: unknown, not refused.
		return &UnavailableError{Op: in.op(), Status: response.StatusCode, Err: fmt.Errorf("read the answer: %w", err)}
	}
	return nil
}

func (c *Client) request(ctx context.Context, in call) (*http.Request, error) {
	target := c.base.String() + in.path
	if len(in.query) > 0 {
		target += "?" + in.query.Encode()
	}
	var body []byte
	if in.method == http.MethodPost || in.body != nil {
		var err error
		if body, err = json.Marshal(orEmpty(in.body)); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, in.method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if len(body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	if in.key != "" {
		request.Header.Set(KeyHeader, in.key)
		// The transport takes an Idempotency-Key as leave to send a request
		// again when a kept connection breaks. Without a way to rewind the
		// body it cannot, and a write is sent as often as the caller says.
		request.GetBody = nil
	}
	return request, nil
}

// orEmpty gives a write without parameters an empty object, so that it has a
// body, and with it the protection above.
func orEmpty(body any) any {
	if body == nil {
		return struct{}{}
	}
	return body
}

// readBounded reads an answer to its end, and refuses one that has none.
func readBounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxResponseBody+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if len(data) > maxResponseBody {
		return nil, fmt.Errorf("the answer is longer than %d bytes", maxResponseBody)
	}
	return data, nil
}

// judge sorts a status into success, refusal and trouble. 408 and 429 are 4xx
// by number and passing by nature.
func judge(op string, status int, data []byte) error {
	if status >= 200 && status < 300 {
		return nil
	}
	var body problem
	if json.Unmarshal(data, &body) != nil || body.Error.Message == "" {
		body.Error.Code, body.Error.Message = "", excerpt(data)
	}
	permanent := status >= 400 && status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
	if permanent {
		return &RejectedError{Status: status, Code: body.Error.Code, Message: body.Error.Message}
	}
	return &UnavailableError{Op: op, Status: status, Err: errors.New(body.Error.Message)}
}

// excerpt makes a line of text of a foreign error page.
func excerpt(data []byte) string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(data), "")), " ")
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	if text == "" {
		return "no explanation"
	}
	return text
}
