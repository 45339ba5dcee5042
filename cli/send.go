package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev/approval"
	"superstep.dev/cli/screen"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
)

// maxEventName bounds an event's name, in bytes.
const maxEventName = 256

func (a control) eventCommand() *cobra.Command {
	var (
		req   thread.EventRequest
		proof proofFlags
		value string
		given func(flag string) bool
	)
	return a.build(command{
		name: "event",
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
			return call(ctx, a.app, func(svc service) (thread.EventReply, error) { return svc.SendEvent(ctx, req) }, a.showEvent)
		},
	})
}

func (a control) showEvent(reply thread.EventReply) {
	name := screen.Clean(reply.Event)
	switch {
	case reply.Repeated:
		a.Printf("repeated  %s  it was taken before, under the same id\n", name)
	case reply.Stored:
		a.Printf("stored  %s  it counts as soon as a worker runs\n", name)
	case len(reply.Nodes) == 0:
		a.Printf("kept    %s  nobody waits for it yet\n", name)
	case len(reply.Nodes) > 1:
		a.Printf("taken   %s  %s continue%s\n", name, screen.Clean(screen.List(reply.Nodes)), whenUnpaused(reply.Paused))
	default:
		a.Printf("taken   %s%s\n", name, continues(reply.Nodes[0], reply.Paused))
	}
	a.next(nextOf(reply.Thread, standing(reply.Paused), nil)...)
}

// maxUpdate bounds update --values, in bytes.
const maxUpdate = 1 << 20

// updateFlags are the flags of update, and what they update.
type updateFlags struct {
	thread.UpdateRequest
	where  place
	proof  proofFlags
	values string
	valued bool
}

func (a control) updateCommand() *cobra.Command {
	var f updateFlags
	var given func(flag string) bool
	return a.build(command{
		name: "update",
		flags: func(flags *pflag.FlagSet) {
			given = flags.Changed
			flags.StringVar(&f.values, "values", "", "channels to write as a `JSON` object, @FILE, or - for standard input; at most 1 MiB")
			flags.StringVar(&f.AsNode, "as-node", "", "write as `NODE` (default: the one that ran last); "+pregel.End+" drops what is left to do")
			flags.StringVar(&f.ID, "id", "", "`ID` of this update, to repeat it safely (default: a new one)")
			f.proof.register(flags, true)
			f.where.register(flags, "update `CHECKPOINT` of the history, as a new branch (default: now)")
		},
		run: func(ctx context.Context, args []string) error {
			f.Thread, f.Checkpoint, f.Reason, f.valued = args[0], f.where.at, f.proof.reason, given("values")
			if err := a.completeUpdate(ctx, &f); err != nil {
				return err
			}
			return call(ctx, a.app, func(svc service) (thread.StateView, error) {
				view, err := svc.Update(ctx, f.UpdateRequest)
				return view, interrupted(ctx, err, "interrupted; "+f.Thread+" was updated or was not. Look: "+
					a.commandLine("history", f.Thread, "--source", "update"))
			}, a.showUpdated)
		},
	})
}

// completeUpdate checks everything that can be checked without a server.
func (a control) completeUpdate(ctx context.Context, f *updateFlags) (err error) {
	switch {
	case !f.valued && f.AsNode == "":
		return usagef(`--values is missing, for instance '{"amount":9900}'; with --as-node it may be left out`)
	case len(f.AsNode) > maxName || strings.ContainsFunc(f.AsNode, notPrintable):
		return usagef("--as-node %s cannot be a node's name", quoted(f.AsNode))
	case len(f.ID) > maxName || strings.ContainsFunc(f.ID, notPrintable):
		return usagef("--id %s cannot be an update's id: at most %d bytes, all printable", quoted(f.ID), maxName)
	}
	if err = f.proof.check(""); err == nil {
		f.By, f.Token, err = a.prove(f.proof, f.Thread, approval.OpUpdate, "")
	}
	if err == nil {
		f.Subgraph, err = f.where.subgraph()
	}
	if err == nil && f.valued {
		f.Values, err = a.jsonObject(ctx, "--values", maxUpdate, f.values)
	}
	return err
}

func (a control) showUpdated(view thread.StateView) {
	if view.Repeated {
		a.Printf("repeated  %s  an update was taken before under the same id, and nothing was written again\n", screen.Clean(view.Thread))
		a.next("state", view.Thread)
		return
	}
	a.Printf("updated  %s  step %d  checkpoint %s\n", screen.Clean(view.Thread), view.Step, screen.Clean(view.Checkpoint))
	if len(view.Next) == 0 {
		a.Printf("nothing is left to do\n")
		return
	}
	a.Printf("next  %s\n", screen.Clean(screen.List(view.Next)))
	a.next(goOn(view.Graph, view.Thread)...)
}
