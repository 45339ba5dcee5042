package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"superstep.dev/examples/refund/payments"
	"superstep.dev/message"
)

// Clerk is a [Model] that follows a rule: it looks at the order that the person names, and when the person wants money back it asks why
// and makes the refund. Whatever else it is told it says what it can do. What it says depends on the conversation alone.
type Clerk struct {
	// Pace is the time that it takes for a word.
	Pace time.Duration
}

// Next implements [Model].
func (c Clerk) Next(ctx context.Context, conversation []message.Message, say func(words string) error) (message.Message, error) {
	next := reply(conversation)
	for _, word := range words(next.Content.Text) {
		select {
		case <-time.After(c.Pace):
		case <-ctx.Done():
			return next, context.Cause(ctx)
		}
		if err := say(word); err != nil {
			return next, err
		}
	}
	return next, nil
}

// words takes a text apart before each space.
func words(text string) []string {
	out := strings.Split(text, " ")
	for i := range out[1:] {
		out[i+1] = " " + out[i+1]
	}
	return out
}

var (
	orderID    = regexp.MustCompile(`\bo-\d+\b`)
	wantsMoney = regexp.MustCompile(`(?i)\b(refund|money back|give back|return)`)
)

// Help is what the clerk says when it is asked for nothing that it can do.
const Help = `I look after orders of this shop, and I give money back. Tell me which order it is about: "Refund order o-1042, please." ` +
	`I look the order up first, then I ask you why it comes back, and then I make the refund. Up to 100.00 I may do that alone. ` +
	`Above that somebody has to approve exactly this refund to exactly this order, and until then nothing is paid: the question waits, ` +
	`for hours if it has to, and no process is kept busy by it. While I talk you may close this page, load it again, or read along from ` +
	`another machine. You may also pull the plug of the machine that I run on: another one goes on behind the last word, and money that ` +
	`was sent is never sent twice, because every refund has a key that the bank looks up first. There are the orders o-1042, o-7 and o-11.`

// reply is the clerk's next message.
func reply(conversation []message.Message) message.Message {
	var last, person message.Message
	for _, m := range conversation {
		if last = m; m.Role == message.RoleUser {
			person = m
		}
	}
	wish := person.Content.String()
	order := orderID.FindString(wish)
	if last.Role != message.RoleTool {
		if order == "" {
			return said(Help)
		}
		return asking("Let me look at order "+order+".", last, toolOrder, map[string]any{"order_id": order})
	}
	result := last.Content.String()
	if problem, ok := strings.CutPrefix(result, failed); ok {
		return said("That does not work: " + problem + ".")
	}
	switch last.Name {
	case toolOrder:
		return found(last, result, wantsMoney.MatchString(wish))
	case toolAsk:
		return refunding(conversation, last, result)
	case toolRefund:
		return told(result)
	}
	return said(Help)
}

// found goes on with an order that was looked up.
func found(last message.Message, result string, refund bool) message.Message {
	var o payments.Order
	if json.Unmarshal([]byte(result), &o) != nil {
		return said("I cannot read what the shop knows of that order.")
	}
	text := fmt.Sprintf("Order %s of %s was paid with %s %s.", o.ID, o.Customer, money(o.Amount), o.Currency)
	if !refund {
		return said(text + " Is there anything that you want me to do with it?")
	}
	return asking(text+" Before I give that back I have to know why.", last, toolAsk, map[string]any{"order_id": o.ID})
}

// refunding makes the refund of the order that was looked up, for the reason that was given.
func refunding(conversation []message.Message, last message.Message, result string) message.Message {
	var why Reason
	var o payments.Order
	for _, m := range conversation {
		if m.Role == message.RoleTool && m.Name == toolOrder {
			_ = json.Unmarshal([]byte(m.Content.String()), &o) // one that was not found leaves no order
		}
	}
	if json.Unmarshal([]byte(result), &why) != nil || o.ID == "" {
		return said("I have lost the order. Please name it again.")
	}
	text := fmt.Sprintf("Thank you: it was %s. I give %s %s back now.", why.Reason, money(o.Amount), o.Currency)
	if o.Amount > FreeRefund {
		text += " That is so much that somebody has to approve it."
	}
	return asking(text, last, toolRefund, Refund{OrderID: o.ID, Amount: o.Amount, Reason: why.Reason})
}

// told says what became of a refund.
func told(result string) message.Message {
	if why, ok := strings.CutPrefix(result, "declined: "); ok {
		return said("The refund was declined: " + why + ". Nothing was paid.")
	}
	return said("Done: " + result + ". The money is on its way, once.")
}

func said(text string) message.Message { return message.Message{Content: message.Text(text)} }

// asking says something and asks for a tool. The call has an id that follows from the message before it.
func asking(text string, last message.Message, name string, arguments any) message.Message {
	m := said(text)
	raw, _ := json.Marshal(arguments) // strings and numbers always encode
	m.ToolCalls = []message.ToolCall{{ID: name + "-" + last.ID, Name: name, Arguments: string(raw)}}
	return m
}
