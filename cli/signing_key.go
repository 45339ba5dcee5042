package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev/approval"
	"superstep.dev/approval/token"
	"superstep.dev/cli/screen"
)

// keyFlags are the flags of signing-key.
type keyFlags struct {
	issuer  bool
	worker  bool
	signFor []string
	id, dir string
}

func (a operating) signingKeyCommand() *cobra.Command {
	var f keyFlags
	return a.build(command{
		name: "signing-key",
		flags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&f.issuer, "issuer", false, "NAME is a service that authenticates people, and signs for them")
			flags.BoolVar(&f.worker, "worker", false, "NAME is that of workers, which sign audits with the key")
			flags.StringSliceVar(&f.signFor, "for", nil, "`NAME` of a person, or group:NAME, for whom the issuer signs; may be repeated")
			flags.StringVar(&f.id, "id", "", "`ID` of the key, in tokens and in the audit (default: follows from the key)")
			flags.StringVar(&f.dir, "dir", ".", "`DIR` to write both files to")
		},
		run: func(_ context.Context, args []string) error { return a.makeKey(args[0], f) },
	})
}

// keyView is a new pair of keys for programs.
type keyView struct {
	ID     string   `json:"id"`
	Person string   `json:"person,omitempty"`
	Issuer string   `json:"issuer,omitempty"`
	Worker string   `json:"worker,omitempty"`
	For    []string `json:"for,omitempty"`
	// Private and Public are the files.
	Private string `json:"private"`
	Public  string `json:"public"`
}

// owner is whose key it is.
func (f keyFlags) owner(name string) (approval.Owner, error) {
	switch {
	case f.issuer && f.worker:
		return approval.Owner{}, usagef("--issuer and --worker exclude each other")
	case len(f.signFor) > 0 && !f.issuer:
		return approval.Owner{}, usagef("--for goes with --issuer: a person's key signs for that person")
	case name != filepath.Base(name) || name == "." || name == "..":
		return approval.Owner{}, usagef("%s cannot be the name of a file", quoted(name))
	case f.issuer:
		return approval.Owner{Issuer: name, For: f.signFor}, nil
	case f.worker:
		return approval.Owner{Worker: name}, nil
	}
	return approval.Owner{Person: name}, nil
}

func (a operating) makeKey(name string, f keyFlags) error {
	owner, err := f.owner(name)
	if err != nil {
		return err
	}
	private, public, err := token.Generate(owner, f.id)
	if err != nil {
		return wrongUse(err)
	}
	signer, err := token.ParseSigner(private)
	if err != nil {
		return err
	}
	v := keyView{ID: signer.Key().ID, Person: owner.Person, Issuer: owner.Issuer, Worker: owner.Worker, For: owner.For,
		Private: filepath.Join(f.dir, name+".key"), Public: filepath.Join(f.dir, name+".pem")}
	if err := writePair(v, private, public); err != nil {
		return err
	}
	a.Show(v, func() {
		a.Printf("made      key %s, which is %s\n", v.ID, screen.Clean(owner.String()))
		a.Printf("private   %s, for its owner alone\n", screen.Clean(v.Private))
		whose := "for the workers"
		if f.worker {
			whose = "for those who verify audits"
		}
		a.Printf("public    %s, %s\n", screen.Clean(v.Public), whose)
	})
	return nil
}

// writePair writes both files, or neither.
func writePair(v keyView, private, public []byte) error {
	if err := writeNew(v.Private, private, 0o600); err != nil {
		return err
	}
	if err := writeNew(v.Public, public, 0o644); err != nil {
		return errors.Join(err, os.Remove(v.Private))
	}
	return nil
}

// writeNew writes a file that is not there yet.
func writeNew(path string, text []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return usagef("%s is there, and a key is never replaced: move it away, or choose another --dir", quoted(path))
	}
	if err != nil {
		return usagef("the key cannot be written: %w", err)
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", quoted(path), err), os.Remove(path))
	}
	return nil
}
