package cli

import (
	"context"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/thread/archive"
)

// archived gives a command that only looks the flag with which it looks at archived threads.
func (a *app) archived(flags *pflag.FlagSet) {
	flags.StringVar(&a.conn.archive, "archive", "", "look at what superstep prune has archived: `FILE`, or a directory; no server is asked")
}

// withArchive calls do over the archive that the command line names.
func (a *app) withArchive(ctx context.Context, opts client.Options, do func(svc service) error) error {
	kept, err := archive.Open(a.conn.archive)
	if err != nil {
		return err
	}
	defer kept.Close()
	a.storage = kept.Storage()
	opts.ExternalStorage = a.storage.External()
	opts = superstep.Encoded(opts)
	c, err := kept.Client(opts)
	if err != nil {
		return err
	}
	defer c.Close()
	return a.over(ctx, c, opts, do)
}
