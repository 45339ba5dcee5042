package payments

import "time"

// A Refund asks for money to go back to the customer of an order.
type Refund struct {
	// OrderID is the order to refund.
	OrderID string `json:"order_id"`
	// Amount is what to give back, in cents: above zero, and at most what is
	// left of the order after its other refunds that were not reversed.
	Amount int64 `json:"amount"`
}

// A Receipt is the service's proof of one committed refund.
type Receipt struct {
	// ID is short and unique in one database: rf-1, rf-2, …
	ID string `json:"id"`
	// OrderID and Amount (cents) are the parameters that were committed.
	OrderID string `json:"order_id"`
	Amount  int64  `json:"amount"`
	// Key is the idempotency key the refund was made under.
	Key string `json:"key"`
	// CreatedAt is when the refund was committed, in UTC.
	CreatedAt time.Time `json:"created_at"`
	// ReversedAt is when the refund was reversed, in UTC; nil while it stands.
	ReversedAt *time.Time `json:"reversed_at,omitempty"`
}
