package payments

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// DefaultTimeout bounds a call whose context has no deadline.
const DefaultTimeout = 30 * time.Second

// A Client calls the payments service. It never repeats a call by itself: how
// often a write is sent is the caller's decision and must be countable.
//
// Every method returns one of two typed errors: a [*RejectedError] is the
// service's refusal and permanent; an [*UnavailableError] is transient and,
// after a write, leaves the outcome unknown. Deadlines and cancellation of the
// context are honoured and show as an UnavailableError that wraps them.
//
// A Client is safe for concurrent use.
type Client struct {
	base *url.URL
	http *http.Client
}

// NewClient returns a client of the service at baseURL, such as
// http://127.0.0.1:8090. It makes no call. A URL without scheme http or https,
// or without host, is an error.
func NewClient(baseURL string) (*Client, error) {
	base, err := url.Parse(baseURL)
	if err != nil {
		return nil, fmt.Errorf("payments: base URL: %w", err)
	}
	if (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, fmt.Errorf("payments: base URL %q: want http://host:port", baseURL)
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	base.RawQuery, base.Fragment = "", ""
	return &Client{base: base, http: &http.Client{
		// A redirected write would be sent twice, or somewhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Over returns a client of the same service whose requests go through t, such
// as a superstep.GuardedTransport: then all of them but reads need the context
// of an effect's call.
func (c *Client) Over(t http.RoundTripper) *Client {
	over := *c.http
	over.Transport = t
	return &Client{base: c.base, http: &over}
}

// Order reads an order. An unknown one is [ErrNotFound].
func (c *Client) Order(ctx context.Context, id string) (Order, error) {
	var order Order
	err := c.do(ctx, call{method: http.MethodGet, path: "/orders/" + url.PathEscape(id)}, &order)
	return order, err
}

// PutOrder creates the order, or replaces it while it has no refunds; with
// refunds a different order is refused. An empty currency is [DefaultCurrency].
func (c *Client) PutOrder(ctx context.Context, order Order) (Order, error) {
	if order.Currency == "" {
		order.Currency = DefaultCurrency
	}
	var stored Order
	err := c.do(ctx, call{method: http.MethodPut, path: "/orders/" + url.PathEscape(order.ID), body: order}, &stored)
	return stored, err
}

// Refund gives money back, once for its key: a repeat with the same parameters
// returns the first receipt, one with others is refused.
func (c *Client) Refund(ctx context.Context, key string, r Refund) (Receipt, error) {
	var receipt Receipt
	err := c.do(ctx, call{method: http.MethodPost, path: "/refunds", key: key, body: r}, &receipt)
	return receipt, err
}

// FindRefund looks a refund up by the key it was made under. It reports false
// only when the service itself says that it has none; a refund request still on
// its way can commit after that.
func (c *Client) FindRefund(ctx context.Context, key string) (Receipt, bool, error) {
	var receipt Receipt
	found, err := c.find(ctx, "/refunds", key, &receipt)
	if err == nil && found && receipt.Key != key {
		return Receipt{}, false, mismatch("GET /refunds", receipt.Key)
	}
	return receipt, found, err
}

// Refunds lists the refunds of an order, oldest first, at most 1000.
func (c *Client) Refunds(ctx context.Context, orderID string) ([]Receipt, error) {
	var list struct {
		Refunds []Receipt `json:"refunds"`
	}
	err := c.do(ctx, call{method: http.MethodGet, path: "/refunds", query: url.Values{"order_id": {orderID}}}, &list)
	return list.Refunds, err
}

// ReverseRefund takes a refund back, once for its key; the keys of reversals
// are apart from those of refunds. A refund that was reversed under another key
// is refused with [CodeAlreadyReversed].
func (c *Client) ReverseRefund(ctx context.Context, key, receiptID string) error {
	var receipt Receipt
	return c.do(ctx, call{method: http.MethodPost, path: "/refunds/" + url.PathEscape(receiptID) + "/reverse", key: key}, &receipt)
}

// Notify tells an order's customer something, once for its key.
func (c *Client) Notify(ctx context.Context, key string, n Notification) (Delivery, error) {
	var delivery Delivery
	err := c.do(ctx, call{method: http.MethodPost, path: "/notifications", key: key, body: n}, &delivery)
	return delivery, err
}

// FindNotification looks a notification up by its key, as [Client.FindRefund]
// does a refund.
func (c *Client) FindNotification(ctx context.Context, key string) (Delivery, bool, error) {
	var delivery Delivery
	found, err := c.find(ctx, "/notifications", key, &delivery)
	if err == nil && found && delivery.Key != key {
		return Delivery{}, false, mismatch("GET /notifications", delivery.Key)
	}
	return delivery, found, err
}

// Stats reads the service's figures, with those of the 1000 newest keys.
func (c *Client) Stats(ctx context.Context) (Stats, error) {
	var stats Stats
	err := c.do(ctx, call{method: http.MethodGet, path: "/stats"}, &stats)
	return stats, err
}

// SetFaults replaces what one path of the service is told to do.
func (c *Client) SetFaults(ctx context.Context, f Faults) error {
	if f.Path == "" {
		f.Path = PathRefunds
	}
	return c.do(ctx, call{method: http.MethodPut, path: "/faults", body: f}, &f)
}

// Faults lists what every path of the service is told to do, with the counts
// that are left.
func (c *Client) Faults(ctx context.Context) ([]Faults, error) {
	var list struct {
		Faults []Faults `json:"faults"`
	}
	err := c.do(ctx, call{method: http.MethodGet, path: "/faults"}, &list)
	return list.Faults, err
}

// ClearFaults makes every path of the service behave.
func (c *Client) ClearFaults(ctx context.Context) error {
	return c.do(ctx, call{method: http.MethodDelete, path: "/faults"}, nil)
}

// Healthy reports whether the service and its database answer.
func (c *Client) Healthy(ctx context.Context) error {
	return c.do(ctx, call{method: http.MethodGet, path: "/healthz"}, nil)
}

// find turns "there is none" into an answer, and leaves every other 404 an
// error.
func (c *Client) find(ctx context.Context, path, key string, into any) (bool, error) {
	err := c.do(ctx, call{method: http.MethodGet, path: path, query: url.Values{"key": {key}}}, into)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func mismatch(op, key string) error {
	return &UnavailableError{Op: op, Status: http.StatusOK, Err: fmt.Errorf("the answer is for another key, %q", key)}
}
