package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/converter"

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
		},
		run: func(context.Context, []string) error { return a.rotate(f) },
	})
}

func (a sealing) rotate(f rotateFlags) error {
	file, err := a.keysFile()
	switch {
	case err != nil:
		return err
	case f.in < 0:
		return usagef("--in %v is in the past", f.in)
	case f.drop != "" && f.id != "":
		return usagef("--drop and --id exclude each other")
	}
	now := a.Now()
	ring, err := changeKeys(file, func(ring secret.Ring) (secret.Ring, error) {
		if f.drop != "" {
			return ring.Without(f.drop, now)
		}
		ring, _, err := ring.Rotate(f.id, now, now.Add(f.in))
		return ring, err
	})
	if err != nil {
		return err
	}
	a.show(keysViewOf(file, ring, now))
	return nil
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
