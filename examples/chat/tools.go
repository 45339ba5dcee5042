package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/examples/refund/payments"
	"superstep.dev/message"
)

// FreeRefund is what the agent may give back without an approval, in cents.
const FreeRefund = 10_000

// The tools, as models call them.
const (
	toolOrder  = "order"
	toolAsk    = "ask"
	toolRefund = "refund"
)

// Refund are the arguments of the tool "refund". Amounts are in cents.
type Refund struct {
	OrderID string `json:"order_id"`
	Amount  int64  `json:"amount"`
	Reason  string `json:"reason"`
}

// Reason is a person's answer to the tool "ask".
type Reason struct {
	Reason string `json:"reason"`
	Note   string `json:"note,omitempty"`
}

// reasons is the JSON schema of a [Reason]. The page makes a button of each value of an enum.
const reasons = `{"type": "object", "additionalProperties": false, "required": ["reason"], "properties": {
	"reason": {"type": "string", "title": "Reason", "enum": ["damaged", "late", "not wanted"]},
	"note": {"type": "string", "title": "Note", "maxLength": 500}}}`

// tool runs a call with its arguments and returns what the model reads. A mistake of the model's is a [*mistake].
type tool func(ctx context.Context, arguments string) (string, error)

// mistake is an error that the model is told of, to do it better.
type mistake struct{ error }

func wrong(format string, args ...any) error { return &mistake{fmt.Errorf(format, args...)} }

// failed is what a result begins with that tells of a mistake.
const failed = "error: "

// runTool runs one call. Its result has an id that follows from the call's, so that a repeated attempt replaces it.
func runTool(tools map[string]tool) func(context.Context, message.ToolCall) (superstep.Command[State], error) {
	return func(ctx context.Context, call message.ToolCall) (superstep.Command[State], error) {
		var text string
		err := wrong("there is no tool %q", call.Name)
		if run, ok := tools[call.Name]; ok {
			text, err = run(ctx, call.Arguments)
		}
		var told *mistake
		switch {
		case errors.As(err, &told):
			text = failed + told.Error()
		case err != nil:
			return superstep.Command[State]{}, err
		}
		result := message.ToolResult(call, text)
		result.ID, result.Name = "result-"+call.ID, call.Name
		var update State
		update.Messages.Append(result)
		return superstep.Command[State]{Update: update}, nil
	}
}

// lookUp reads an order.
func lookUp(pay Payments) tool {
	return func(ctx context.Context, arguments string) (string, error) {
		var asked struct {
			OrderID string `json:"order_id"`
		}
		if err := decode(arguments, &asked); err != nil {
			return "", err
		}
		order, err := superstep.Task(ctx, "order", func(ctx context.Context) (payments.Order, error) { return pay.Order(ctx, asked.OrderID) })
		if errors.Is(err, payments.ErrNotFound) {
			return "", wrong("there is no order %s", asked.OrderID)
		}
		if err != nil {
			return "", err
		}
		text, err := json.Marshal(order)
		return string(text), err
	}
}

// askWhy asks the person why an order comes back.
func askWhy(ctx context.Context, arguments string) (string, error) {
	var asked struct {
		OrderID string `json:"order_id"`
	}
	if err := decode(arguments, &asked); err != nil {
		return "", err
	}
	why, err := superstep.Interrupt[Reason](ctx, map[string]string{"question": "Why does order " + asked.OrderID + " come back?"},
		superstep.WithAnswerSchema(reasons))
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(why)
	return string(text), err
}

// giveBack makes a refund. That people declined it is something the model reads.
func giveBack(refund *superstep.Effect[payments.Refund, payments.Receipt]) tool {
	return func(ctx context.Context, arguments string) (string, error) {
		var r Refund
		if err := decode(arguments, &r); err != nil {
			return "", err
		}
		if r.OrderID == "" || r.Amount <= 0 {
			return "", wrong("a refund needs an order and an amount above zero")
		}
		receipt, err := refund.Call(ctx, payments.Refund{OrderID: r.OrderID, Amount: r.Amount})
		var declined *superstep.RejectedError
		var refused *payments.RejectedError
		switch {
		case errors.As(err, &declined):
			return "declined: " + cmp.Or(declined.Reason, "somebody said no"), nil
		case errors.As(err, &refused):
			return "", wrong("the payments service refuses it: %s", refused.Message)
		case err != nil:
			return "", err
		}
		return fmt.Sprintf("refunded %s: %s", money(receipt.Amount), receipt.ID), nil
	}
}

// decode reads a model's arguments strictly: a field that the tool does not have is a mistake too.
func decode(arguments string, into any) error {
	d := json.NewDecoder(strings.NewReader(arguments))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return wrong("the arguments do not fit: %w", err)
	}
	return nil
}

// refundEffect is the write that must happen once: the payments service makes a second one with the same key a no-op, and says what it
// has under a key.
func refundEffect(pay Payments) *superstep.Effect[payments.Refund, payments.Receipt] {
	return &superstep.Effect[payments.Refund, payments.Receipt]{
		Name: "payments.refund", Target: superstep.TargetKeyed,
		Do: pay.Refund,
		Lookup: func(ctx context.Context, key string, _ payments.Refund) (superstep.Finding[payments.Receipt], error) {
			receipt, found, err := pay.FindRefund(ctx, key)
			if !found {
				return superstep.Finding[payments.Receipt]{Status: superstep.FindingNotFound}, err
			}
			return superstep.Finding[payments.Receipt]{Status: superstep.FindingCommitted, Receipt: receipt}, err
		},
		Check: func(p payments.Refund, r payments.Receipt) error {
			if r.OrderID != p.OrderID || r.Amount != p.Amount {
				return fmt.Errorf("receipt %s is for %s of order %s, asked was %s of order %s", r.ID, money(r.Amount), r.OrderID, money(p.Amount), p.OrderID)
			}
			return nil
		},
		Compensate: func(ctx context.Context, key string, _ payments.Refund, r payments.Receipt) error {
			return pay.ReverseRefund(ctx, key, r.ID)
		},
		Approval: func(p payments.Refund) (approval.Action, bool) {
			return approval.Action{Summary: fmt.Sprintf("Refund %s to order %s", money(p.Amount), p.OrderID), Risk: approval.RiskHigh,
				Within: (4 * time.Hour).Milliseconds(), Silence: approval.SilenceDeny}, p.Amount > FreeRefund
		},
	}
}

// money prints cents as people write them.
func money(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }
