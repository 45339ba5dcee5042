package payments

import (
	"errors"
	"fmt"
	"net/http"
)

// ErrNotFound is matched (errors.Is) by a refusal that names an order, refund
// or notification the service does not have.
//
// A bare 404 from something that is not this service does not match: a wrong
// base URL must never be read as "that refund was not made".
var ErrNotFound = errors.New("payments: not found")

// Codes name the reason of a refusal, for programs. The message beside a code
// is for people and may change.
const (
	CodeBadRequest           = "bad_request"
	CodeKeyMissing           = "idempotency_key_missing"
	CodeKeyInvalid           = "idempotency_key_invalid"
	CodeKeyReused            = "idempotency_key_reused"
	CodeInvalidOrder         = "invalid_order"
	CodeInvalidAmount        = "invalid_amount"
	CodeInvalidNotification  = "invalid_notification"
	CodeInvalidFaults        = "invalid_faults"
	CodeExceedsOrder         = "exceeds_order"
	CodeOrderHasRefunds      = "order_has_refunds"
	CodeAlreadyReversed      = "already_reversed"
	CodeOrderNotFound        = "order_not_found"
	CodeRefundNotFound       = "refund_not_found"
	CodeNotificationNotFound = "notification_not_found"
	CodeUnavailable          = "unavailable"
)

// A RejectedError is the service's refusal of a request: repeating the same
// request gives the same refusal, so a caller treats it as permanent. Nothing
// was committed by the refused request.
type RejectedError struct {
	// Status is the HTTP status, from 400 to 499.
	Status int
	// Code is one of the Code constants, or empty when the answer did not come
	// from this service.
	Code string
	// Message says what was wrong, in a sentence for people.
	Message string
}

// Error returns the message with its code and status.
func (e *RejectedError) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("payments: refused with status %d: %s", e.Status, e.Message)
	}
	return fmt.Sprintf("payments: refused (%s, status %d): %s", e.Code, e.Status, e.Message)
}

// Is makes a refusal for a missing thing match [ErrNotFound].
func (e *RejectedError) Is(target error) bool {
	if target != ErrNotFound {
		return false
	}
	switch e.Code {
	case CodeOrderNotFound, CodeRefundNotFound, CodeNotificationNotFound:
		return true
	}
	return false
}

// An UnavailableError says that no usable answer came: a transport error, an
// expired deadline, a 5xx, 408 or 429 status, or a body that cannot be read. It
// is transient, and after a write its outcome is unknown: the service may have
// committed. Look the write up by its key, or send it again with the same key.
type UnavailableError struct {
	// Op is the call that failed, such as "POST /refunds".
	Op string
	// Status is the HTTP status, or 0 when none arrived.
	Status int
	// Err is the cause. Context errors stay visible to errors.Is.
	Err error
}

// Error returns the call and the cause.
func (e *UnavailableError) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("payments: %s: no answer: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("payments: %s: status %d: %v", e.Op, e.Status, e.Err)
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// refuse builds a refusal. The store and the handlers return it as an error;
// the server writes it as the answer.
func refuse(status int, code, format string, args ...any) error {
	return &RejectedError{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Statuses of refusals, by what the caller did wrong.
const (
	statusMalformed = http.StatusBadRequest          // the request cannot be understood
	statusInvalid   = http.StatusUnprocessableEntity // understood, and never acceptable
	statusConflict  = http.StatusConflict            // acceptable, were the state another
)
