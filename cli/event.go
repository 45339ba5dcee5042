package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"superstep.dev"
	"superstep.dev/approval"
)

// eventFlags are the flags of event.
type eventFlags struct {
	askFlags
	value, id string
	valued    bool
}

func (a *app) eventCommand() *cobra.Command {
	var f eventFlags
	cmd := a.build(command{
		use: "event THREAD NAME", short: "Send an event to a run", group: groupRuns, args: []string{"THREAD", "NAME"},
		about: `Every node of the run that waits for the event goes on. While none does it is kept, for the first that will: at
most 100 events, of 512 KiB together. Without a worker the event is stored unchecked. Whoever repeats an event without
knowing what became of it names it with --id: it is taken once.`,
		example: []string{
			`event r-7 payment.settled --value '{"amount":250}'`,
			`event r-7 payment.settled --value @answer.json --id evt-81`,
			`event r-7 night.over`,
		},
		run: func(cmd *cobra.Command, args []string) error {
			f.valued = cmd.Flags().Changed("value")
			return a.sendEvent(cmd.Context(), args, f)
		},
	})
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.value, "value", "", "value as `JSON`, @FILE, or - for standard input; at most 256 KiB (default null)")
	f.register(flags, false)
	flags.StringVar(&f.id, "id", "", "`ID` of this event, to repeat it safely (default: a new one)")
	return cmd
}

// maxEventName bounds an event's name, in bytes.
const maxEventName = 256

// sendEvent sends an event. args are the thread and the event's name.
func (a *app) sendEvent(ctx context.Context, args []string, f eventFlags) error {
	req := superstep.EventRequest{Thread: args[0], Name: args[1], ID: f.id}
	if n := len(req.Name); n == 0 || n > maxEventName {
		return usagef("an event's name has 1 to %d bytes, this one has %d", maxEventName, n)
	}
	if len(req.ID) > maxThreadID {
		return usagef("--id has at most %d bytes", maxThreadID)
	}
	err := f.askFlags.check()
	if err == nil {
		req.By, req.Token, err = a.asker(f.askFlags, req.Thread, approval.Control{Op: approval.OpEvent, On: req.Name})
	}
	if err != nil {
		return err
	}
	if f.valued {
		value, err := jsonFlag{name: "--value", max: maxAnswer}.read(ctx, f.value, a.stdin)
		if err != nil {
			return err
		}
		req.Value = value
	}
	call := func(svc service, ctx context.Context, _ string) (superstep.EventReply, error) {
		return svc.SendEvent(ctx, req)
	}
	return onThread(a, ctx, args[0], call, a.showEvent)
}

func (a *app) showEvent(reply superstep.EventReply) error {
	name := clean(reply.Event)
	switch {
	case reply.Repeated:
		a.printf("repeated  %s  it was taken before, under the same id\n", name)
	case reply.Stored:
		a.printf("stored  %s  it counts as soon as a worker runs\n", name)
	case len(reply.Nodes) == 0:
		a.printf("kept    %s  nobody waits for it yet\n", name)
	case len(reply.Nodes) > 1:
		a.printf("taken   %s  %s continue\n", name, clean(list(reply.Nodes)))
	default:
		a.printf("taken   %s%s\n", name, continues(reply.Nodes[0]))
	}
	a.next([]string{"show", reply.Thread})
	return nil
}

// showWaits shows what a thread waits for that is no person.
func (a *app) showWaits(view superstep.ThreadView) error {
	if len(view.Waits) > 0 {
		a.printf("\n")
		t := newTable("EVENT", "NODE", "UNTIL")
		for _, w := range view.Waits {
			t.row(w.Event, w.Node, a.until(w.Due))
		}
		if err := t.writeTo(a.stdout, ""); err != nil {
			return err
		}
	}
	if len(view.Kept) > 0 {
		a.printf("\n")
		t := newTable("KEPT EVENT", "BY", "SENT")
		for _, k := range view.Kept {
			t.row(k.Event, k.By, a.moment(k.At)+", "+a.ago(k.At))
		}
		return t.writeTo(a.stdout, "")
	}
	return nil
}

// until is when a wait is over, "" when it has no end.
func (a *app) until(due time.Time) string {
	if due.IsZero() {
		return ""
	}
	return a.moment(due)
}

// sendNext is the command that ends the first wait of a thread, nil when it waits for nothing.
func sendNext(view superstep.ThreadView) []string {
	if view.Status != superstep.StatusWaitingEvent || len(view.Waits) == 0 {
		return nil
	}
	w := view.Waits[0]
	line := []string{"event", view.Thread, w.Event}
	if value := sampleAnswer(json.RawMessage(w.Schema)); value != "null" {
		line = append(line, "--value", value)
	}
	return line
}
