//go:build unix

package processes

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// guard kills the process groups it was told of when this process ends, which it sees by the end of a pipe. Nothing in
// this process could: it may be killed, or end by a panic or os.Exit.
type guard struct {
	cmd  *exec.Cmd
	tell io.WriteCloser
	once sync.Once
}

// guarding reads "hold GROUP" and "release GROUP", and at the end of its input kills what it still holds. Signals that
// are meant for the program leave it alone: it ends right after it. (kill is spelt as POSIX has it; some shells take no
// other spelling for groups.)
const guarding = `trap '' HUP INT TERM
held=
while read -r word group; do
	rest=
	for one in $held; do [ "$one" = "$group" ] || rest="$rest $one"; done
	held=$rest
	[ "$word" = release ] || held="$held $group"
done
for one in $held; do kill -s KILL -- "-$one" 2>/dev/null; done
:`

func newGuard() (*guard, error) {
	cmd := exec.Command("sh", "-c", guarding)
	ownGroup(cmd)
	tell, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &guard{cmd: cmd, tell: tell}, nil
}

// hold has a process group killed at this process's end.
func (g *guard) hold(group int) error {
	_, err := fmt.Fprintf(g.tell, "hold %d\n", group)
	return err
}

// release takes that back: the group is gone, and its id may become another's.
func (g *guard) release(group int) {
	_, _ = fmt.Fprintf(g.tell, "release %d\n", group) // fails when the guard is gone, which holds nothing then
}

// close ends the guard. What it still holds is killed.
func (g *guard) close() {
	g.once.Do(func() {
		_ = g.tell.Close() // its input ends either way
		_ = g.cmd.Wait()   // nothing depends on how it ended
	})
}

// ownGroup makes a command the leader of a process group.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills a process group, if there is one.
func killGroup(group int) error {
	err := syscall.Kill(-group, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// terminate asks a command to end.
func terminate(cmd *exec.Cmd) error { return cmd.Process.Signal(syscall.SIGTERM) }
