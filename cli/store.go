package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev"
	"superstep.dev/cli/screen"
	"superstep.dev/store"
)

// memories are the commands for the store.
type memories struct{ *app }

func (a memories) command() *cobra.Command {
	cmd := a.parent("store")
	for _, below := range []*cobra.Command{a.getCommand(), a.putCommand(), a.deleteCommand(), a.searchCommand(), a.namespacesCommand()} {
		cmd.AddCommand(below)
	}
	return cmd
}

// with opens the store and calls do. A server is asked only where nobody says which store.
func (a memories) with(ctx context.Context, f storeFlag, do func(*superstep.Store) error) error {
	place, err := a.storePlace(f)
	if err != nil {
		return err
	}
	var s *superstep.Store
	if place != "" {
		s, err = a.openStore(ctx, place)
	} else {
		s, err = a.ofServer(ctx, f)
	}
	if err != nil {
		return interrupted(ctx, err, "interrupted")
	}
	if s == nil {
		return usagef("there is no store: name one by --store FILE, --store postgres://USER@HOST/DATABASE or %s", envStore)
	}
	err = do(s)
	return interrupted(ctx, cmp.Or(err, s.Close()), "interrupted")
}

// ofServer is the store that a devserver of this machine names.
func (a memories) ofServer(ctx context.Context, f storeFlag) (*superstep.Store, error) {
	opts, err := a.clientOptions()
	if err != nil {
		return nil, err
	}
	opts.Logger = silentLogger()
	c, err := a.backend.dial(ctx, superstep.Encoded(opts))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return a.findStore(ctx, f, c, opts)
}

// namespaceOf reads a namespace as it is typed: labels with a period between two.
func namespaceOf(text string) ([]string, error) {
	namespace := store.ParseNamespace(text)
	if err := store.CheckNamespace(namespace); err != nil {
		return nil, usagef("%s: %w", quoted(text), err)
	}
	return namespace, nil
}

// address reads the arguments that name an item.
func address(args []string) (namespace []string, key string, err error) {
	if namespace, err = namespaceOf(args[0]); err != nil {
		return nil, "", err
	}
	if err := store.CheckKey(args[1]); err != nil {
		return nil, "", usagef("%w", err)
	}
	return namespace, args[1], nil
}

func (a memories) getCommand() *cobra.Command {
	var f storeFlag
	return a.build(command{
		name:  "store get",
		flags: func(flags *pflag.FlagSet) { f.register(flags) },
		run: func(ctx context.Context, args []string) error {
			namespace, key, err := address(args)
			if err != nil {
				return err
			}
			return a.with(ctx, f, func(s *superstep.Store) error {
				item, err := s.Get(ctx, namespace, key, store.KeepTTL())
				if err == nil {
					a.Show(item, func() { a.showItem(item) })
				}
				return err
			})
		},
	})
}

func (a memories) showItem(item store.Item) {
	t := a.Table()
	t.Fact("namespace", strings.Join(item.Namespace, "."))
	t.Fact("key", item.Key)
	t.Fact("version", fmt.Sprint(item.Version))
	t.Fact("created", a.moment(item.Created))
	t.Fact("updated", a.moment(item.Updated))
	t.Fact("expires", a.moment(item.Expires))
	t.Print("")
	a.Exactly(item.Value)
}

// moment is a time as people read it, "" for none.
func (a memories) moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// storeChange is what a program reads of a change.
type storeChange struct {
	Event     string   `json:"event"`
	Namespace []string `json:"namespace"`
	Key       string   `json:"key"`
}

func (a memories) changed(event string, namespace []string, key string) {
	a.Show(storeChange{event, namespace, key}, func() {
		a.Printf("%s  %s  %s\n", event, screen.Clean(strings.Join(namespace, ".")), screen.Clean(key))
	})
}

func (a memories) putCommand() *cobra.Command {
	var (
		f     storeFlag
		value string
		ttl   time.Duration
		id    string
	)
	return a.build(command{
		name: "store put",
		flags: func(flags *pflag.FlagSet) {
			f.register(flags)
			flags.StringVar(&value, "value", "", "value as a `JSON` object, @FILE, or - for standard input; at most 1 MiB")
			flags.DurationVar(&ttl, "ttl", 0, "`TIME` after which it is gone unless it is read or written before (default: never)")
			flags.StringVar(&id, "id", "", "`ID` of this write, to repeat it safely")
		},
		run: func(ctx context.Context, args []string) error {
			namespace, key, err := address(args)
			if err != nil {
				return err
			}
			if ttl < 0 || ttl > store.MaxTTL {
				return usagef("--ttl %v is not between 0 and %v", ttl, store.MaxTTL)
			}
			object, err := a.jsonObject(ctx, "--value", store.MaxValueBytes, value)
			if err != nil {
				return err
			}
			return a.with(ctx, f, func(s *superstep.Store) error {
				err := s.Put(ctx, namespace, key, object, store.WithTTL(ttl), store.WithID(id))
				if err == nil {
					a.changed("put", namespace, key)
				}
				return err
			})
		},
	})
}

func (a memories) deleteCommand() *cobra.Command {
	var f storeFlag
	return a.build(command{
		name:  "store delete",
		flags: func(flags *pflag.FlagSet) { f.register(flags) },
		run: func(ctx context.Context, args []string) error {
			namespace, key, err := address(args)
			if err != nil {
				return err
			}
			return a.with(ctx, f, func(s *superstep.Store) error {
				err := s.Delete(ctx, namespace, key)
				if err == nil {
					a.changed("deleted", namespace, key)
				}
				return err
			})
		},
	})
}

func (a memories) searchCommand() *cobra.Command {
	var (
		f      storeFlag
		q      = store.Query{KeepTTL: true}
		filter string
	)
	return a.build(command{
		name: "store search",
		flags: func(flags *pflag.FlagSet) {
			f.register(flags)
			flags.StringVar(&filter, "filter", "", "what members of the value are to be, as a `JSON` object, @FILE, or - for standard input")
			flags.StringVar(&q.Text, "text", "", "the nearest to `TEXT` in meaning first, in a program whose store embeds")
			flags.IntVar(&q.Limit, "limit", store.DefaultLimit, fmt.Sprintf("at most `N` items, up to %d", store.MaxLimit))
			flags.IntVar(&q.Offset, "offset", 0, "leave out the first `N`")
		},
		run: func(ctx context.Context, args []string) (err error) {
			var prefix []string
			if args[0] != "" {
				prefix, err = namespaceOf(args[0])
			}
			err = cmp.Or(err, checkBetween("--limit", q.Limit, 1, store.MaxLimit), checkBetween("--offset", q.Offset, 0, store.MaxOffset))
			if err == nil && filter != "" {
				q.Filter, err = a.jsonObject(ctx, "--filter", store.MaxFilterBytes, filter)
			}
			if err != nil {
				return err
			}
			return a.with(ctx, f, func(s *superstep.Store) error {
				hits, err := s.Search(ctx, prefix, q)
				if err == nil {
					a.Show(listed(hits), func() { a.showHits(hits, q) })
				}
				return err
			})
		},
	})
}

func (a memories) showHits(hits []store.Hit, q store.Query) {
	if len(hits) == 0 {
		a.Printf("no items\n")
		return
	}
	screen.Rows(a.Screen, hits, func(h store.Hit) screen.Row {
		return screen.Row{strings.Join(h.Namespace, "."), h.Key, h.Version, a.Ago(h.Updated), screen.Cell(h.Value)}
	}, "NAMESPACE", "KEY", "VERSION", "UPDATED", "VALUE")
	if len(hits) == q.Limit {
		a.Printf("%d shown; there may be more: --limit, --offset, --filter\n", q.Limit)
	}
}

func (a memories) namespacesCommand() *cobra.Command {
	var (
		f              storeFlag
		q              store.NamespaceQuery
		prefix, suffix string
	)
	return a.build(command{
		name: "store namespaces",
		flags: func(flags *pflag.FlagSet) {
			f.register(flags)
			flags.StringVar(&prefix, "prefix", "", "only those that begin with these `LABELS`; * is any one label")
			flags.StringVar(&suffix, "suffix", "", "only those that end with these `LABELS`; * is any one label")
			flags.IntVar(&q.MaxDepth, "max-depth", 0, "the first `N` labels only (default: all)")
			flags.IntVar(&q.Limit, "limit", store.DefaultNamespacesLimit, fmt.Sprintf("at most `N` namespaces, up to %d", store.MaxLimit))
			flags.IntVar(&q.Offset, "offset", 0, "leave out the first `N`")
		},
		run: func(ctx context.Context, _ []string) error {
			q.Prefix, q.Suffix = store.ParseNamespace(prefix), store.ParseNamespace(suffix)
			err := cmp.Or(checkBetween("--limit", q.Limit, 1, store.MaxLimit), checkBetween("--offset", q.Offset, 0, store.MaxOffset),
				checkBetween("--max-depth", q.MaxDepth, 0, store.MaxDepth))
			if err != nil {
				return err
			}
			return a.with(ctx, f, func(s *superstep.Store) error {
				all, err := s.Namespaces(ctx, q)
				if err == nil {
					a.Show(listed(all), func() {
						for _, namespace := range all {
							a.Printf("%s\n", screen.Clean(strings.Join(namespace, ".")))
						}
						if len(all) == 0 {
							a.Printf("no namespaces\n")
						}
					})
				}
				return err
			})
		},
	})
}
