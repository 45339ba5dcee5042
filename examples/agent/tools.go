package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/message"
)

// FreeOrder is how many pieces the agent may order without asking.
const FreeOrder = 50

// Storeroom is what the tools reach.
type Storeroom interface {
	// Stock returns how many pieces of a part there are; a part that is not known is [ErrNoPart].
	Stock(ctx context.Context, part string) (int, error)
	// Order orders parts, once for its key.
	Order(ctx context.Context, key string, o Order) (Receipt, error)
	// FindOrder returns what was ordered under a key, and false when nothing was.
	FindOrder(ctx context.Context, key string) (Receipt, bool, error)
}

// ErrNoPart says that the storeroom has no place for a part.
var ErrNoPart = errors.New("the storeroom has no such part")

// Order is an order of parts.
type Order struct {
	Part   string `json:"part"`
	Pieces int    `json:"pieces"`
}

// Receipt is an order that was made.
type Receipt struct {
	ID string `json:"id"`
	Order
}

// tool runs a call with its arguments and returns what the model reads. A mistake of the model's is a [*mistake].
type tool func(ctx context.Context, arguments string) (string, error)

// mistake is an error that the model is told of, to do it better.
type mistake struct{ error }

func wrong(format string, args ...any) error { return &mistake{fmt.Errorf(format, args...)} }

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
			text = "error: " + told.Error()
		case err != nil:
			return superstep.Command[State]{}, err
		}
		result := message.ToolResult(call, text)
		result.ID = "result-" + call.ID
		var update State
		update.Messages.Append(result)
		return superstep.Command[State]{Update: update}, nil
	}
}

func stock(s Storeroom) tool {
	return func(ctx context.Context, arguments string) (string, error) {
		var asked struct {
			Part string `json:"part"`
		}
		if err := decode(arguments, &asked); err != nil {
			return "", err
		}
		n, err := superstep.Task(ctx, "stock", func(ctx context.Context) (int, error) { return s.Stock(ctx, asked.Part) })
		if errors.Is(err, ErrNoPart) {
			return "", wrong("%w: %s", ErrNoPart, asked.Part)
		}
		return fmt.Sprint(n), err
	}
}

// orderParts makes an order. That people declined it is something the model reads.
func orderParts(order *superstep.Effect[Order, Receipt]) tool {
	return func(ctx context.Context, arguments string) (string, error) {
		var o Order
		if err := decode(arguments, &o); err != nil {
			return "", err
		}
		if o.Part == "" || o.Pieces < 1 {
			return "", wrong("an order needs a part and at least 1 piece")
		}
		receipt, err := order.Call(ctx, o)
		var declined *superstep.RejectedError
		if errors.As(err, &declined) {
			return "declined: " + cmp.Or(declined.Reason, "a person said no"), nil
		}
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("ordered %d %s: %s", receipt.Pieces, receipt.Part, receipt.ID), nil
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

func orderEffect(s Storeroom) *superstep.Effect[Order, Receipt] {
	return &superstep.Effect[Order, Receipt]{
		Name: "storeroom.order", Target: superstep.TargetKeyed,
		Do: s.Order,
		Lookup: func(ctx context.Context, key string, _ Order) (superstep.Finding[Receipt], error) {
			receipt, found, err := s.FindOrder(ctx, key)
			if !found {
				return superstep.Finding[Receipt]{Status: superstep.FindingNotFound}, err
			}
			return superstep.Finding[Receipt]{Status: superstep.FindingCommitted, Receipt: receipt}, err
		},
		Check: func(o Order, r Receipt) error {
			if r.Order != o {
				return fmt.Errorf("receipt %s is for %d %s, asked was for %d %s", r.ID, r.Pieces, r.Part, o.Pieces, o.Part)
			}
			return nil
		},
		Approval: func(o Order) (approval.Action, bool) {
			return approval.Action{Summary: fmt.Sprintf("Order %d %s.", o.Pieces, o.Part)}, o.Pieces > FreeOrder
		},
	}
}
