package pregel

// Renew makes what runs next on a thread new to everybody outside: its tasks get keys that no task of the thread had
// before, as on a branch.
func (t *Thread) Renew() {
	if t.Head == nil {
		return
	}
	t.seq++ // or a branch that is made at this point later would have the same keys
	c := *t.Head.Checkpoint
	c.Branch = "n" + itoa(t.seq)
	r := *t.Head
	r.Checkpoint = &c
	t.Head = &r
}
