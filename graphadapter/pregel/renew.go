package pregel

import "strings"

// renewal begins what a renewed branch's name has behind that of the branch it renews: "b3~7" and "b3~7~9" renew "b3".
const renewal = '~'

// Renew makes what runs next on a thread new to everybody outside: its tasks get keys that no task of the thread had
// before, as on a branch. The branch's name says what it renews: see [Renewals].
func (t *Thread) Renew() {
	if t.Head == nil {
		return
	}
	t.seq++ // or a branch that is made at this point later would have the same keys
	c := *t.Head.Checkpoint
	c.Branch = renewed(t.Head.branch(), t.seq)
	r := *t.Head
	r.Checkpoint, r.line, r.asked, r.dropped, r.early = &c, nil, nil, nil, nil
	t.Head = &r
}

func renewed(branch string, seq int) string { return branch + string(renewal) + itoa(seq) }

// Renewals returns the branch that was renewed to be this one, and what each renewal has added to its name, the oldest
// first: of "b3~7~9" they are "b3" and "~7", "~7~9".
func Renewals(branch string) (line string, renewals []string) {
	line, added, _ := strings.Cut(branch, string(renewal))
	for at := range len(added) {
		if added[at] == renewal {
			renewals = append(renewals, string(renewal)+added[:at])
		}
	}
	if added != "" {
		renewals = append(renewals, string(renewal)+added)
	}
	return line, renewals
}

// Rewind puts a thread back to where it stood in earlier, a state of it that [Thread.At] returned: what it did since has
// been taken back, so none of that may count. A copy of that checkpoint becomes the thread's newest, with the same
// superstep and values; the others stay what happened before it. What runs next has new keys, as after Renew. What the
// thread keeps under thread-wide keys, and what it is left with, is as it was.
func (p *Program) Rewind(t, earlier *Thread) *Record {
	from := earlier.Head.Checkpoint
	t.seq++
	c := p.loaded(from)
	c.updated, c.hasUpdated, c.Branch = nil, false, renewed(earlier.Head.branch(), t.seq)
	p.seal(c, from, "", SourceFork, from.Step, t.seq)
	c.Parent = from.Parent
	t.Head, t.memory = &Record{Checkpoint: c, control: earlier.Head.control}, cloneRecords(earlier.memory)
	for _, key := range sortedKeys(t.memory) {
		t.memory[key].tasks = taskRecords{}
	}
	t.Head.memory = t.remembered()
	return t.Head
}

// SetLeft gives a thread what it is left with when it goes on from an earlier state, or on a renewed branch: ledgers of
// what earlier tasks did outside that was not taken back, by [Task.Place]. The tasks at those places find them in their
// own. New input, an update from outside and the end of all that is to do forget them.
func (t *Thread) SetLeft(ledgers map[string]Value) { t.left = ledgers }

// Left returns what SetLeft has set and nothing has forgotten yet. It must not be changed.
func (t *Thread) Left() map[string]Value { return t.left }

// Place is the task's Key without the renewals of its branch: where in its thread the task is, however often the thread
// has come there.
func (t *Task) Place() string {
	line, renewals := Renewals(t.Branch)
	if len(renewals) == 0 {
		return t.Key()
	}
	there := *t
	there.Branch, there.key = line, ""
	return there.Key()
}
