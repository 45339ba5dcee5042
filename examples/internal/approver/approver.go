// Package approver makes what the examples that stay up verify approvals with: a key pair of this machine's, and rules that let who
// runs them approve. Nobody has to set anything up before the first approval, and nothing of it is for production.
package approver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"time"

	"superstep.dev/approval"
	"superstep.dev/approval/token"
)

// Approver is the paths of a private key, of the public ones, and of the rules.
type Approver struct{ Signing, Keys, Rules string }

// rulesText lets one person request and approve everything.
const rulesText = `# Made by make dev or make chat, and kept when you change it: who may approve what. examples/refund/approvals.yaml has more to begin with.
people:
  %q: {permissions: [refund.write]}
rules:
  - allow: refunds
    tool: payments.refund
`

// Prepare makes in dir what is not there yet.
func Prepare(dir string) (Approver, error) {
	a := Approver{Signing: filepath.Join(dir, "approval.key"), Keys: filepath.Join(dir, "approval.pem"), Rules: filepath.Join(dir, "approvals.yaml")}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return a, fmt.Errorf("make the directory of the approval keys: %w", err)
	}
	who, err := user.Current()
	if err != nil {
		return a, fmt.Errorf("find out who may approve: %w", err)
	}
	if err := a.prepareKeys(who.Username); err != nil {
		return a, fmt.Errorf("make the approval keys: %w", err)
	}
	if err := create(a.Rules, fmt.Appendf(nil, rulesText, who.Username), 0o644); err != nil {
		return a, fmt.Errorf("make the approval rules: %w", err)
	}
	return a, nil
}

// prepareKeys makes a pair of that person's unless both keys are there: half a pair is of no use.
func (a Approver) prepareKeys(who string) error {
	if a.areOf(who) {
		return nil
	}
	private, public, err := token.Generate(approval.Owner{Person: who}, "dev")
	if err != nil {
		return err
	}
	if err := errors.Join(remove(a.Signing), remove(a.Keys)); err != nil {
		return err
	}
	return errors.Join(create(a.Keys, public, 0o644), create(a.Signing, private, 0o600))
}

// Env is what tells workers of it.
func (a Approver) Env() []string {
	return []string{token.EnvKeys + "=" + a.Keys, "SUPERSTEP_APPROVAL_RULES=" + a.Rules}
}

// areOf reports whether both keys can be used, and are that person's.
func (a Approver) areOf(who string) bool {
	signer, err := token.LoadSigner(a.Signing)
	if err != nil {
		return false
	}
	keys, err := token.Open(a.Keys)
	if err != nil {
		return false
	}
	owner, err := keys.Owner(signer.Key().ID, time.Now())
	return err == nil && owner.Person == who
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// create writes a file that only then is there; one that is stays as it is.
func create(path string, text []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}
