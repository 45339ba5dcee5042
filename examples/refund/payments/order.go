package payments

import (
	"fmt"
	"regexp"
)

// DefaultCurrency is given to an order that is put without one.
const DefaultCurrency = "EUR"

// maxTextLength bounds what people write, in bytes: a customer's name, a
// notification's text.
const maxTextLength = 4096

// An Order is a sale that can be refunded, wholly or in parts.
type Order struct {
	// ID names the order: 1 to 64 letters, digits, dots, dashes or underscores.
	ID string `json:"id"`
	// Amount is what the customer paid, in cents. It is above zero.
	Amount int64 `json:"amount"`
	// Currency is a three-letter ISO 4217 code.
	Currency string `json:"currency"`
	// Customer says who paid.
	Customer string `json:"customer"`
}

var (
	orderID      = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	currencyCode = regexp.MustCompile(`^[A-Z]{3}$`)
)

// seedOrders are present in every database, so that the example runs before
// anybody has put an order. They do not replace an order put under their id.
var seedOrders = []Order{
	{ID: "o-1042", Amount: 25_000, Currency: DefaultCurrency, Customer: "Ada Berg"},
	{ID: "o-7", Amount: 25_000, Currency: DefaultCurrency, Customer: "Noor Haddad"},
	{ID: "o-11", Amount: 4_200, Currency: DefaultCurrency, Customer: "Tomás Lima"},
}

// validate refuses an order that no refund could be computed from.
func (o Order) validate() error {
	switch {
	case !orderID.MatchString(o.ID):
		return refuse(statusInvalid, CodeInvalidOrder, "order id %q: want 1 to 64 letters, digits, '.', '-' or '_'", o.ID)
	case o.Amount <= 0:
		return refuse(statusInvalid, CodeInvalidOrder, "order %s: amount %s is not above zero", o.ID, cents(o.Amount))
	case !currencyCode.MatchString(o.Currency):
		return refuse(statusInvalid, CodeInvalidOrder, "order %s: currency %q is not a three-letter code", o.ID, o.Currency)
	case len(o.Customer) > maxTextLength:
		return refuse(statusInvalid, CodeInvalidOrder, "order %s: customer is longer than %d bytes", o.ID, maxTextLength)
	}
	return nil
}

// cents prints an amount as people write it: 25000 is "250.00".
func cents(amount int64) string {
	sign := ""
	if amount < 0 {
		sign = "-"
	}
	// The remainder keeps the dividend's sign, so each part is made positive
	// by itself; negating the whole would overflow at the smallest int64.
	units, rest := amount/100, amount%100
	if units < 0 {
		units = -units
	}
	if rest < 0 {
		rest = -rest
	}
	return fmt.Sprintf("%s%d.%02d", sign, units, rest)
}
