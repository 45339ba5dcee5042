package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/converter"

	"superstep.dev/cli/keyuse"
	"superstep.dev/cli/screen"
	"superstep.dev/thread/secret"
	"superstep.dev/thread/secret/endpoint"
)

const (
	envKeys        = "SUPERSTEP_KEYS"
	envKeysCommand = "SUPERSTEP_KEYS_COMMAND"
)

// keysPlace is where the keys are: a file, or a command that writes them. A flag wins over the environment.
func (c *connection) keysPlace() (file, command string, err error) {
	file, command = c.conn.keys, c.conn.keysCommand
	if file == "" && command == "" {
		file, _ = c.env.LookupEnv(envKeys)
		command, _ = c.env.LookupEnv(envKeysCommand)
	}
	if file != "" && command != "" {
		return "", "", usagef("--keys and --keys-command exclude each other, as do %s and %s", envKeys, envKeysCommand)
	}
	return file, command, nil
}

// openKeys opens the keys that flags or the environment name, nil when they name none.
func (c *connection) openKeys() (keys *secret.Keys, err error) {
	file, command, err := c.keysPlace()
	o := secret.Options{Log: c.sealed}
	switch {
	case err != nil:
		return nil, err
	case file != "":
		keys, err = secret.File(file, o)
	case command != "":
		keys, err = secret.Command(command, o)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, wrongUse(err)
	}
	return keys, nil
}

// dataConverter encrypts with the keys that were given. Without any it is the program's own, or the one that asks the codec endpoint of
// the connection's settings.
func (c *connection) dataConverter(p *envconfig.ClientConfigProfile) (converter.DataConverter, error) {
	keys, err := c.openKeys()
	switch {
	case err != nil:
		return nil, err
	case keys != nil:
		return keys.Converter(c.payload), nil
	case p.Codec == nil || p.Codec.Endpoint == "" || c.payload != nil:
		return c.payload, nil
	}
	remote, err := endpoint.Dial(p.Codec.Endpoint, p.Codec.Auth, p.Namespace)
	if err != nil {
		return nil, wrongUse(err)
	}
	return remote.Converter(nil), nil
}

// sealing are the commands of those who keep the keys.
type sealing struct{ *app }

func (a sealing) command() *cobra.Command {
	cmd := a.parent("keys")
	cmd.AddCommand(a.newCommand(), a.listCommand(), a.rotateCommand(), a.serveCommand())
	return cmd
}

// keysFile is the key file that a command is about.
func (a sealing) keysFile() (string, error) {
	file, command, err := a.keysPlace()
	switch {
	case err != nil:
		return "", err
	case command != "":
		return "", usagef("the keys come from a command, and this one changes a file: name it by --keys FILE, and put it where the command reads")
	case file == "":
		return "", usagef("no key file is named: give --keys FILE or set %s", envKeys)
	}
	return file, nil
}

// keysView is what a key file holds, without the bytes.
type keysView struct {
	Place string    `json:"place"`
	Keys  []keyItem `json:"keys"`
	// Kept is the file as it was before a key was removed, and Needed the open runs that need that key; empty of other commands.
	Kept   string       `json:"kept,omitempty"`
	Needed *keyuse.Uses `json:"needed,omitempty"`
}

// keyItem is one key. Its state is writes, reads, or next for one that will write.
type keyItem struct {
	ID    string    `json:"id"`
	State string    `json:"state"`
	Made  time.Time `json:"made"`
	From  time.Time `json:"writes_from"`
}

func keysViewOf(place string, ring secret.Ring, now time.Time) keysView {
	v := keysView{Place: place}
	writes, _ := ring.Writes(now)
	for _, k := range ring.Keys() {
		state := "reads"
		switch {
		case k.ID == writes.ID:
			state = "writes"
		case k.From.After(now):
			state = "next"
		}
		v.Keys = append(v.Keys, keyItem{k.ID, state, k.Made, k.From})
	}
	return v
}

func (a sealing) show(v keysView) {
	a.Show(v, func() {
		a.Printf("keys of %s\n", screen.Clean(v.Place))
		t := a.Table("KEY", "STATE", "MADE", "WRITES FROM")
		for _, k := range v.Keys {
			t.Row(k.ID, k.State, k.Made.Format(time.RFC3339), k.From.Format(time.RFC3339))
		}
		t.Print("  ")
		if v.Needed != nil && v.Needed.Runs > 0 {
			a.Printf("%s\n", screen.Clean(neededBy(*v.Needed)))
		}
		if v.Kept != "" {
			a.Printf("kept  %s: with the key that was removed; remove it when nobody needs the key any more\n", screen.Clean(v.Kept))
		}
	})
}

func (a sealing) newCommand() *cobra.Command {
	var id string
	return a.build(command{
		name: "keys new",
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&id, "id", "", "`ID` of the key (default: the day and some letters)")
		},
		run: func(context.Context, []string) error {
			file, err := a.keysFile()
			if err != nil {
				return err
			}
			now := a.Now()
			ring, _, err := secret.Ring{}.Rotate(id, now, now)
			if err != nil {
				return wrongUse(err)
			}
			if err := writeNew(file, ring.Text(), 0o600); err != nil {
				return err
			}
			a.show(keysViewOf(file, ring, now))
			return nil
		},
	})
}

func (a sealing) listCommand() *cobra.Command {
	return a.build(command{
		name: "keys list",
		run: func(context.Context, []string) error {
			keys, err := a.openKeys()
			if err != nil {
				return err
			}
			if keys == nil {
				return usagef("no keys are named: give --keys FILE or --keys-command COMMAND, or set %s", envKeys)
			}
			a.show(keysViewOf(keys.Where(), keys.Ring(), a.Now()))
			return nil
		},
	})
}

// rotateFlags are the flags of keys rotate.
type rotateFlags struct {
	id, drop string
	in       time.Duration
	yes      bool
}

// rotateIn is how long a new key only reads, unless somebody says otherwise: longer than it takes every process to read it, from a
// command too.
const rotateIn = 2 * time.Minute

func (a sealing) rotateCommand() *cobra.Command {
	var f rotateFlags
	return a.build(command{
		name: "keys rotate",
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&f.id, "id", "", "`ID` of the new key (default: the day and some letters)")
			flags.DurationVar(&f.in, "in", rotateIn, "`TIME` from now on at which the new key begins to write")
			flags.StringVar(&f.drop, "drop", "", "remove the key of that `ID` in place of making one")
			flags.BoolVar(&f.yes, "yes", false, "with --drop: remove it, whatever needs it")
		},
		run: func(ctx context.Context, _ []string) error { return a.rotate(ctx, f) },
	})
}

func (a sealing) rotate(ctx context.Context, f rotateFlags) error {
	file, err := a.keysFile()
	switch {
	case err != nil:
		return err
	case f.in < 0:
		return usagef("--in %v is in the past", f.in)
	case f.drop != "" && f.id != "":
		return usagef("--drop and --id exclude each other")
	case f.yes && f.drop == "":
		return usagef("--yes goes with --drop")
	case f.drop != "":
		return a.drop(ctx, file, f)
	}
	now := a.Now()
	ring, err := changeKeys(file, func(ring secret.Ring) (secret.Ring, error) {
		ring, _, err := ring.Rotate(f.id, now, now.Add(f.in))
		return ring, err
	})
	if err != nil {
		return err
	}
	a.show(keysViewOf(file, ring, now))
	return nil
}

// drop removes a key once the user has confirmed that, knowing which open runs need it, and keeps the file as it was.
func (a sealing) drop(ctx context.Context, file string, f rotateFlags) error {
	now := a.Now()
	keys, err := secret.File(file, secret.Options{})
	if err == nil {
		_, err = keys.Ring().Without(f.drop, now)
	}
	if err != nil {
		return wrongUse(err)
	}
	uses, looked := a.keyUses(ctx, f.drop)
	if !f.yes {
		return usagef("%s; without the key nobody can read what is encrypted with it, and such a run stands still: say --yes to remove it",
			unconfirmed(f.drop, uses, looked))
	}
	kept, v := "", keysView{}
	ring, err := changeKeys(file, func(ring secret.Ring) (secret.Ring, error) {
		left, err := ring.Without(f.drop, now)
		if err == nil {
			kept = file + ".before-" + now.UTC().Format("20060102T150405Z")
			err = writeNew(kept, ring.Text(), 0o600)
		}
		return left, err
	})
	if err != nil {
		return err
	}
	if v = keysViewOf(file, ring, now); looked == nil {
		v.Needed = &uses
	}
	v.Kept = kept
	a.show(v)
	return nil
}

// keyUses returns the open runs that need a key. The error says why nobody could look.
func (a sealing) keyUses(ctx context.Context, key string) (uses keyuse.Uses, err error) {
	opts, err := a.clientOptions()
	if err != nil {
		return uses, err
	}
	opts.Logger = silentLogger()
	c, err := a.backend.dial(ctx, opts)
	if err != nil {
		return uses, err
	}
	defer c.Close()
	return a.backend.keyUses(ctx, c, cmp.Or(opts.Namespace, client.DefaultNamespace), key)
}

// unconfirmed says which open runs need a key, or that nobody could look.
func unconfirmed(key string, uses keyuse.Uses, err error) string {
	switch {
	case err != nil:
		return fmt.Sprintf("nobody could look which open runs need the key %s (%v)", quoted(key), err)
	case uses.Runs == 0:
		return fmt.Sprintf("none of %s needs the key %s, but what the server keeps of runs that are over may",
			english.Plural(uses.Looked, "open run", ""), quoted(key))
	}
	return neededBy(uses)
}

// neededBy names the open runs that need a key.
func neededBy(uses keyuse.Uses) string {
	text := english.Plural(uses.Runs, "open run needs", "open runs need") + " the key: " + screen.List(uses.Threads)
	if more := uses.Runs - len(uses.Threads); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// changeKeys replaces a key file as a whole.
func changeKeys(file string, change func(secret.Ring) (secret.Ring, error)) (ring secret.Ring, err error) {
	err = replaceFile("--keys", file, func(path string) ([]byte, error) {
		keys, err := secret.File(path, secret.Options{})
		if err == nil {
			ring, err = change(keys.Ring())
		}
		if err != nil {
			return nil, wrongUse(err)
		}
		return ring.Text(), nil
	})
	return ring, err
}

// replaceFile replaces a file that a flag names as a whole, by what is made of it. Of two that change it at once one is refused, and
// nothing is lost.
func replaceFile(flag, file string, text func(path string) ([]byte, error)) error {
	path, err := filepath.EvalSymlinks(file)
	if err != nil {
		return usagef("%s: %w", flag, err)
	}
	beside := path + ".new"
	written, err := os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return usagef("%s is there: somebody else changes the keys now, or was killed while at it; remove it when nobody does", quoted(beside))
	}
	if err != nil {
		return usagef("the keys cannot be written: %w", err)
	}
	if err = errors.Join(rewritten(path, written, text), written.Close()); err == nil {
		err = os.Rename(beside, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(beside))
	}
	return syncFolder(filepath.Dir(path))
}

func rewritten(path string, to *os.File, text func(path string) ([]byte, error)) error {
	made, err := text(path)
	if err != nil {
		return err
	}
	if _, err = to.Write(made); err == nil {
		err = to.Sync()
	}
	if err != nil {
		return fmt.Errorf("write the keys: %w", err)
	}
	return nil
}

// syncFolder stores what a folder's entries are.
func syncFolder(path string) error {
	folder, err := os.Open(cmp.Or(path, "."))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// endpointFlags are the flags of keys serve.
type endpointFlags struct {
	addr, tokenFile string
	origins, hosts  []string
	ready           readyFile
}

func (a sealing) serveCommand() *cobra.Command {
	var f endpointFlags
	return a.build(command{
		name: "keys serve",
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&f.addr, "addr", "127.0.0.1:8235", "listen at `HOST:PORT`")
			flags.StringVar(&f.tokenFile, "token-file", "", "`FILE` with the token that requests carry; needed outside of this machine")
			flags.StringSliceVar(&f.origins, "origin", nil, "`URL` of a web UI whose pages may ask; may be repeated")
			flags.StringSliceVar(&f.hosts, "host", nil, "`NAME` under which the endpoint is asked from outside; may be repeated")
			flags.StringVar((*string)(&f.ready), "ready-file", "", "`FILE` to write the pid to while it listens")
		},
		run: func(ctx context.Context, _ []string) error { return a.serve(ctx, f) },
	})
}

// endpointEvent is what the endpoint tells programs.
type endpointEvent struct {
	Event string `json:"event"`
	PID   int    `json:"pid"`
	URL   string `json:"url"`
}

// handler is the endpoint that the flags describe.
func (a sealing) handler(f endpointFlags) (http.Handler, error) {
	host, port, err := net.SplitHostPort(f.addr)
	if err != nil || port == "" {
		return nil, usagef("--addr %s is not HOST:PORT", quoted(f.addr))
	}
	c := endpoint.Config{Origins: f.origins, Hosts: f.hosts}
	switch {
	case f.tokenFile != "":
		if c.Token, err = readSecretFile("--token-file", f.tokenFile, "token"); err != nil {
			return nil, err
		}
		a.secrets.Keep(c.Token)
	case !endpoint.Loopback(host):
		return nil, usagef("--addr %s is not of this machine alone, and there is no --token-file: everybody could read what is encrypted", quoted(f.addr))
	}
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		c.Hosts = append(c.Hosts, host)
	}
	a.sealed = a.tell
	keys, err := a.openKeys()
	if err != nil {
		return nil, err
	}
	if keys == nil {
		return nil, usagef("no keys are named: give --keys FILE or --keys-command COMMAND, or set %s", envKeys)
	}
	h, err := endpoint.Handler(keys.Codec(), c)
	if err != nil {
		return nil, wrongUse(err)
	}
	return h, nil
}

// serve answers until ctx ends.
func (a sealing) serve(ctx context.Context, f endpointFlags) error {
	h, err := a.handler(f)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", f.addr)
	if err != nil {
		return notBegun("--addr", err)
	}
	return serveUntil(ctx, endpoint.Server(h), listener, f.ready, func() {
		e := endpointEvent{Event: "ready", PID: os.Getpid(), URL: "http://" + listener.Addr().String()}
		a.ShowLine(e, func() { a.Printf("codec endpoint ready  %s  pid %d\n", screen.Clean(e.URL), e.PID) })
	})
}
