package site

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// callTimeout bounds one request.
const callTimeout = 10 * time.Second

// RefusedError is the site's refusal of a request: the same request is refused again, and wrote nothing.
type RefusedError struct {
	// Status is the HTTP status, from 400 to 499; Message is the site's own.
	Status  int
	Message string
}

// Error returns the site's message with its status.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("site: refused with status %d: %s", e.Status, e.Message)
}

// Permanent says that no repetition helps.
func (*RefusedError) Permanent() bool { return true }

// Client calls a site. Any error but a [*RefusedError] leaves open whether the site wrote. It is safe for concurrent use.
type Client struct {
	base *url.URL
	http *http.Client
}

// NewClient returns a client of the site at a base URL such as http://127.0.0.1:8080.
func NewClient(base string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("site: the base URL %q is no http or https URL", base)
	}
	return &Client{base: u, http: &http.Client{Timeout: callTimeout}}, nil
}

// Publish writes an article under a key, once: a repeated call returns the page that is there.
func (c *Client) Publish(ctx context.Context, key string, a Article) (Page, error) {
	var page Page
	err := c.call(ctx, http.MethodPut, key, a, &page)
	return page, err
}

// FindPage returns what was written under a key, and false when there is nothing to be seen.
func (c *Client) FindPage(ctx context.Context, key string) (Page, bool, error) {
	var page Page
	err := c.call(ctx, http.MethodGet, key, nil, &page)
	var refused *RefusedError
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound && refused.Message == noPage {
		return Page{}, false, nil
	}
	return page, err == nil, err
}

// Withdraw takes a page off the site. Withdrawing it again does nothing.
func (c *Client) Withdraw(ctx context.Context, p Page) error {
	return c.call(ctx, http.MethodDelete, p.Key, nil, nil)
}

// Pages lists what the site shows, oldest first.
func (c *Client) Pages(ctx context.Context) ([]Page, error) {
	var pages []Page
	err := c.call(ctx, http.MethodGet, "", nil, &pages)
	return pages, err
}

func (c *Client) call(ctx context.Context, method, key string, body, into any) error {
	fail := func(err error) error { return fmt.Errorf("site: %s: %w", method, err) }
	raw, err := json.Marshal(body)
	if err != nil {
		return fail(err)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base.JoinPath("pages", url.PathEscape(key)).String(), bytes.NewReader(raw))
	if err != nil {
		return fail(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return fail(err)
	}
	defer response.Body.Close()
	answer, err := read(response.Body)
	if err != nil {
		return fail(err)
	}
	return judge(method, response.StatusCode, answer, into)
}

// judge sorts an answer into success, refusal and trouble that passes.
func judge(method string, status int, answer []byte, into any) error {
	switch {
	case status >= 200 && status < 300 && into == nil:
		return nil
	case status >= 200 && status < 300:
		if err := json.Unmarshal(answer, into); err != nil {
			return fmt.Errorf("site: %s: read the answer: %w", method, err)
		}
		return nil
	}
	var p problem
	_ = json.Unmarshal(answer, &p) // what is no answer of the site has no message
	passing := status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
	if passing {
		return fmt.Errorf("site: %s: status %d: %s", method, status, p.Error)
	}
	return &RefusedError{Status: status, Message: p.Error}
}
