package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev/cli/screen"
	"superstep.dev/serve/access"
)

// envClientKeys names the file of the keys of serve's clients.
const envClientKeys = "SUPERSTEP_CLIENT_KEYS"

func (a operating) serveKeysCommand() *cobra.Command {
	cmd := a.parent("serve keys")
	cmd.AddCommand(a.newClientKeyCommand(), a.listClientKeysCommand(), a.removeClientKeyCommand())
	return cmd
}

// clientKeysVar declares the flag of the file.
func clientKeysVar(flags *pflag.FlagSet, to *string) {
	flags.StringVar(to, "client-keys", "", "`FILE` with what keys of clients are known by ("+envClientKeys+")")
}

// clientKeysFile is the file that a command is about.
func (a operating) clientKeysFile(flag string) (string, error) {
	if flag == "" {
		flag, _ = a.env.LookupEnv(envClientKeys)
	}
	if flag == "" {
		return "", usagef("no file of keys is named: give --client-keys FILE or set %s", envClientKeys)
	}
	return flag, nil
}

// clientKeyItem is a key as it is kept: without the key.
type clientKeyItem struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Permissions []string  `json:"permissions,omitempty"`
	Made        time.Time `json:"made"`
}

// newClientKey is a key for programs: the only time that it is shown.
type newClientKey struct {
	clientKeyItem
	Key  string `json:"key"`
	File string `json:"file"`
}

func itemOf(k access.Key) clientKeyItem { return clientKeyItem{k.ID, k.Name, k.Permissions, k.Made} }

func (a operating) newClientKeyCommand() *cobra.Command {
	var file string
	var admin bool
	return a.build(command{
		name: "serve keys new",
		flags: func(flags *pflag.FlagSet) {
			clientKeysVar(flags, &file)
			flags.BoolVar(&admin, "admin", false, "let NAME see and change what is of others")
		},
		run: func(_ context.Context, args []string) error {
			path, err := a.clientKeysFile(file)
			if err != nil {
				return err
			}
			who := access.Identity{Name: args[0]}
			if admin {
				who.Permissions = []string{access.Admin}
			}
			key, secret, err := access.NewKey(who, a.Now())
			if err != nil {
				return wrongUse(err)
			}
			if err := addClientKey(path, key); err != nil {
				return err
			}
			a.Show(newClientKey{itemOf(key), secret, path}, func() { a.Printf("%s\n", secret) })
			return nil
		},
	})
}

// addClientKey puts a key into a file, which it makes when there is none.
func addClientKey(path string, key access.Key) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return writeNew(path, access.KeysText([]access.Key{key}), 0o600)
	}
	_, err := changeClientKeys(path, func(keys []access.Key) ([]access.Key, error) { return append(keys, key), nil })
	return err
}

func changeClientKeys(path string, change func([]access.Key) ([]access.Key, error)) (keys []access.Key, err error) {
	err = replaceFile("--client-keys", path, func(path string) ([]byte, error) {
		text, err := os.ReadFile(path)
		if err == nil {
			keys, err = access.ParseKeys(text)
		}
		if err == nil {
			keys, err = change(keys)
		}
		if err != nil {
			return nil, wrongUse(fmt.Errorf("%s: %w", quoted(path), err))
		}
		return access.KeysText(keys), nil
	})
	return keys, err
}

// clientKeysView is what a file of keys holds.
type clientKeysView struct {
	File string          `json:"file"`
	Keys []clientKeyItem `json:"keys"`
}

func (a operating) showClientKeys(path string, keys []access.Key) {
	v := clientKeysView{File: path, Keys: []clientKeyItem{}}
	for _, k := range keys {
		v.Keys = append(v.Keys, itemOf(k))
	}
	a.Show(v, func() {
		a.Printf("keys of %s\n", screen.Clean(path))
		t := a.Table("KEY", "NAME", "MADE", "PERMISSIONS")
		for _, k := range v.Keys {
			t.Row(k.ID, k.Name, k.Made.Format(time.RFC3339), screen.List(k.Permissions))
		}
		t.Print("  ")
	})
}

func (a operating) listClientKeysCommand() *cobra.Command {
	var file string
	return a.build(command{
		name:  "serve keys list",
		flags: func(flags *pflag.FlagSet) { clientKeysVar(flags, &file) },
		run: func(context.Context, []string) error {
			path, err := a.clientKeysFile(file)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return usagef("--client-keys: %w", err)
			}
			keys, err := access.ParseKeys(text)
			if err != nil {
				return wrongUse(fmt.Errorf("%s: %w", quoted(path), err))
			}
			a.showClientKeys(path, keys)
			return nil
		},
	})
}

func (a operating) removeClientKeyCommand() *cobra.Command {
	var file string
	return a.build(command{
		name:  "serve keys remove",
		flags: func(flags *pflag.FlagSet) { clientKeysVar(flags, &file) },
		run: func(_ context.Context, args []string) error {
			path, err := a.clientKeysFile(file)
			if err != nil {
				return err
			}
			keys, err := changeClientKeys(path, func(keys []access.Key) ([]access.Key, error) {
				left := slices.DeleteFunc(slices.Clone(keys), func(k access.Key) bool { return k.ID == args[0] })
				if len(left) == len(keys) {
					return nil, fmt.Errorf("there is no key %s", quoted(args[0]))
				}
				return left, nil
			})
			if err != nil {
				return err
			}
			a.showClientKeys(path, keys)
			return nil
		},
	})
}
