package payments

import "time"

// A Notification tells the customer of an order something.
type Notification struct {
	// OrderID is the order whose customer is told.
	OrderID string `json:"order_id"`
	// Text is what they are told: not empty, at most 4096 bytes.
	Text string `json:"text"`
}

// validate refuses a notification nobody could read.
func (n Notification) validate() error {
	switch {
	case n.Text == "":
		return refuse(statusInvalid, CodeInvalidNotification, "notification for order %s: text is empty", n.OrderID)
	case len(n.Text) > maxTextLength:
		return refuse(statusInvalid, CodeInvalidNotification, "notification for order %s: text is longer than %d bytes", n.OrderID, maxTextLength)
	}
	return nil
}

// A Delivery is the service's proof that one notification was taken on.
type Delivery struct {
	// ID is short and unique in one database: nt-1, nt-2, …
	ID string `json:"id"`
	// OrderID and Text are the parameters that were committed.
	OrderID string `json:"order_id"`
	Text    string `json:"text"`
	// Key is the idempotency key the notification was made under.
	Key string `json:"key"`
	// CreatedAt is when the notification was committed, in UTC.
	CreatedAt time.Time `json:"created_at"`
}
