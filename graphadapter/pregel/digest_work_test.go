package pregel

import (
	"fmt"
	"hash"
	"strings"
	"testing"
)

// counting is a hash that counts what is written to it, and to all that were cloned from it.
type counting struct {
	hash.Cloner
	written *int
}

func (c counting) Write(p []byte) (int, error) {
	*c.written += len(p)
	return c.Cloner.Write(p)
}

func (c counting) Clone() (hash.Cloner, error) {
	same, err := c.Cloner.Clone()
	return counting{same, c.written}, err
}

// countDigested counts the bytes of long values that are digested until the test ends. take returns how many there were since it was last
// called.
func countDigested(t *testing.T) (take func() int) {
	t.Helper()
	written, plain := 0, newDigest
	newDigest = func() hash.Hash { return counting{plain().(hash.Cloner), &written} }
	t.Cleanup(func() { newDigest = plain })
	return func() (since int) {
		since, written = written, 0
		return since
	}
}

// The digested list has a megabyte when a test begins, and grows by a kilobyte at a time.
const (
	digestedBytes = 1_000_000
	appendedBytes = 1 << 10
)

// digested is a graph whose node runs again and again, and a loop of it whose list has a megabyte and has been appended to once, beside a
// text of a tenth of that.
func digested(t *testing.T, reducer string) (*Program, *Loop) {
	t.Helper()
	p, err := Compile(&Spec{
		Version: SpecVersion, Name: "g",
		Channels: []ChannelSpec{{Name: "list", Kind: KindReduce, Reducer: reducer}, {Name: "text", Kind: KindLast}, {Name: "n", Kind: KindLast}},
		Nodes:    []NodeSpec{{Name: "a"}},
		Edges:    []Edge{{From: Start, To: "a"}, {From: "a", To: "a"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	items := make([]string, 0, digestedBytes/appendedBytes)
	for i := range cap(items) {
		items = append(items, item(-1-i))
	}
	input := fmt.Sprintf(`{"list":[%s],"text":"%s"}`, strings.Join(items, ","), strings.Repeat("y", digestedBytes/10))
	l, err := p.Start(NewThread(), Input{Value: Value(input)}, Options{RecursionLimit: 1000}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	step(t, l, appending(0))
	return p, l
}

// item is an element that makes a list longer by a kilobyte with the comma before it. It is a message too.
func item(n int) string {
	head := fmt.Sprintf(`{"id":"m%d","role":"user","content":"`, n)
	return head + strings.Repeat("x", appendedBytes-len(`,`+head+`"}`)) + `"}`
}

func appending(n int) []Write { return []Write{{Channel: "list", Value: Value("[" + item(n) + "]")}} }

// step runs one superstep of the only node.
func step(t *testing.T, l *Loop, writes []Write) {
	t.Helper()
	ready := l.Ready()
	if len(ready) != 1 {
		t.Fatalf("%d tasks are handed out, and the loop is %v", len(ready), l.Err())
	}
	l.Deliver(ready[0], Outcome{Command: Command{Update: writes}})
}

// listBytes is the size of the list of a loop.
func listBytes(l *Loop) int { return l.work.cells[l.prog.index["list"]].value.Len() }

// TestAnAppendDigestsWhatItAppends: 100 appends of 1 KiB to a list of a megabyte digest 100 KiB, and a byte each for the bracket behind.
func TestAnAppendDigestsWhatItAppends(t *testing.T) {
	for _, reducer := range []string{"append/v1", "messages/v1"} {
		t.Run(reducer, func(t *testing.T) {
			take := countDigested(t)
			_, l := digested(t, reducer)
			before := listBytes(l)
			if first := take(); before < digestedBytes || first < before {
				t.Fatalf("a list of %d bytes digested %d", before, first)
			}
			const appends = 100
			for n := range appends {
				step(t, l, appending(1+n))
			}
			if grown := listBytes(l) - before; grown != appends*appendedBytes {
				t.Fatalf("the list has grown by %d bytes", grown)
			}
			if got, want := take(), appends*(appendedBytes+1); got != want || got >= 200<<10 {
				t.Errorf("%d appends digested %d bytes, want %d", appends, got, want)
			}
		})
	}
}

// TestARestoredLoopDigestsWhatChanges: to restore a loop and to deliver the outcomes that another one had digests nothing of what they
// leave as it is, wherever the loop comes from. Of a list that they append to it is what is appended; a loop that comes from another process
// digests all of it once.
func TestARestoredLoopDigestsWhatChanges(t *testing.T) {
	for name, c := range map[string]struct {
		restore func(*Program, *Loop) (*Loop, error)
		here    bool
	}{
		"within the process": {func(p *Program, l *Loop) (*Loop, error) {
			f, err := l.Freeze()
			if err != nil {
				return nil, err
			}
			return f.Restore(p, nil)
		}, true},
		"from bytes": {func(p *Program, l *Loop) (*Loop, error) {
			s, err := SuspendLoop(l)
			if err == nil {
				s, err = ReadSuspended(s.Bytes())
			}
			if err != nil {
				return nil, err
			}
			return s.Restore(p, nil)
		}, false},
		"from text": {func(p *Program, l *Loop) (*Loop, error) {
			text, err := l.Suspend()
			if err != nil {
				return nil, err
			}
			return p.Restore(text, nil)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			take := countDigested(t)
			p, l := digested(t, "append/v1")
			take()
			again, err := c.restore(p, l)
			if err != nil {
				t.Fatal(err)
			}
			const outcomes = 20
			for _, loop := range []*Loop{again, l} { // the worker's, and that of the run, to which its outcomes are delivered again
				for n := range outcomes {
					step(t, loop, []Write{{Channel: "n", Value: Value(fmt.Sprint(n))}})
				}
			}
			if got := take(); got != 0 {
				t.Errorf("%d bytes were digested of what did not change", got)
			}
			for _, loop := range []*Loop{again, l} {
				before := listBytes(loop)
				for n := range outcomes {
					step(t, loop, appending(1+n))
				}
				want := outcomes * (appendedBytes + 1)
				if loop == again && !c.here {
					want += before - 1 // but for the bracket
				}
				if got := take(); got != want {
					t.Errorf("%d appends digested %d bytes, want %d", outcomes, got, want)
				}
			}
			if one, other := again.Thread().Head.Checkpoint.Digest, l.Thread().Head.Checkpoint.Digest; one != other {
				t.Errorf("the restored loop comes to %s, the other one to %s", one, other)
			}
		})
	}
}

// TestATurnDigestsWhatItAdds: the next run of a thread that stays in its process digests its input, and of the list what that appends.
func TestATurnDigestsWhatItAdds(t *testing.T) {
	take := countDigested(t)
	p, l := digested(t, "append/v1")
	f, err := l.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	take()
	again, err := f.Restore(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	thread := again.Thread()
	input := Value(`{"list":[` + item(1) + `]}`)
	before := listBytes(l)
	next, err := p.Start(thread, Input{Value: input}, Options{RecursionLimit: 1000}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	step(t, next, nil)
	if grown := listBytes(next) - before; grown != appendedBytes {
		t.Fatalf("the list has grown by %d bytes", grown)
	}
	if got, want := take(), len(input)+appendedBytes+1; got != want {
		t.Errorf("a turn digested %d bytes, want %d", got, want)
	}
}
