package cli

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/cli/screen"
)

// maxEventName bounds an event's name, in bytes.
const maxEventName = 256

func (a control) eventCommand() *cobra.Command {
	var (
		req   superstep.EventRequest
		proof proofFlags
		value string
		given func(flag string) bool
	)
	return a.build(command{
		use: "event THREAD NAME", short: "Send an event to a run",
		about: `Every node of the run that waits for the event goes on. While none does it is kept, for the first that will: at
most 100 events, of 512 KiB together. Without a worker the event is stored unchecked. Whoever repeats an event without
knowing what became of it names it with --id: it is taken once.`,
		example: []string{
			`event r-7 payment.settled --value '{"amount":250}'`,
			`event r-7 payment.settled --value @answer.json --id evt-81`,
			`event r-7 night.over`,
		},
		flags: func(flags *pflag.FlagSet) {
			given = flags.Changed
			flags.StringVar(&value, "value", "", "value as `JSON`, @FILE, or - for standard input; at most 256 KiB (default null)")
			proof.register(flags, false)
			flags.StringVar(&req.ID, "id", "", "`ID` of this event, to repeat it safely (default: a new one)")
		},
		run: func(ctx context.Context, args []string) error {
			req.Thread, req.Name = args[0], args[1]
			if n := len(req.Name); n == 0 || n > maxEventName {
				return usagef("an event's name has 1 to %d bytes, this one has %d", maxEventName, n)
			}
			err := proof.check(req.ID)
			if err == nil {
				req.By, req.Token, err = a.prove(proof, req.Thread, approval.OpEvent, req.Name)
			}
			if err == nil && given("value") {
				req.Value, err = a.jsonText(ctx, "--value", maxAnswer, value)
			}
			if err != nil {
				return err
			}
			return call(ctx, a.app, func(svc service) (superstep.EventReply, error) { return svc.SendEvent(ctx, req) }, a.showEvent)
		},
	})
}

func (a control) showEvent(reply superstep.EventReply) {
	name := screen.Clean(reply.Event)
	switch {
	case reply.Repeated:
		a.Printf("repeated  %s  it was taken before, under the same id\n", name)
	case reply.Stored:
		a.Printf("stored  %s  it counts as soon as a worker runs\n", name)
	case len(reply.Nodes) == 0:
		a.Printf("kept    %s  nobody waits for it yet\n", name)
	case len(reply.Nodes) > 1:
		a.Printf("taken   %s  %s continue\n", name, screen.Clean(screen.List(reply.Nodes)))
	default:
		a.Printf("taken   %s%s\n", name, continues(reply.Nodes[0]))
	}
	a.next("show", reply.Thread)
}
