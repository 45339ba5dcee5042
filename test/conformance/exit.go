package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// exitView is a case as durability exit is to answer it when it was recorded in another mode. All actions are performed
// and all results compared, but for the checkpoints that exit by definition does not keep:
//
//   - of the checkpoints that a run action makes, in each graph, only the newest is kept; those of an update_state all are;
//   - "history" lists what is kept, "parent" is the nearest kept checkpoint on the way back, null if there is none;
//   - "from_checkpoint" names the same checkpoint at its place among the kept ones. When a later action names a checkpoint
//     that exit would not keep, the run action that made it runs in sync;
//   - a command's writes are not kept with the checkpoint where the command began. When a later action shows or names
//     checkpoints of the thread, the command runs in sync.
type exitView struct {
	inSync []bool        // by action: all that it makes must be kept
	from   map[int]int   // by action: its from_checkpoint among what is kept
	shown  map[int][]int // by history action: the places of what is kept in the whole list
	cut    bool          // something is not kept, or runs in sync for it
}

// scene is one graph of a thread: a list of checkpoints.
type scene struct{ thread, path string }

func sceneOf(a *action) scene { return scene{a.thread(), strings.Join(a.Subgraph, "/")} }

// usesHistory reports whether an action shows or counts in a list of checkpoints.
func (a *action) usesHistory() bool { return a.History || a.FromCheckpoint != nil }

// witness follows a case in sync mode: which action made which checkpoint, and where it stood.
type witness struct {
	doc   *caseDoc
	lists map[scene][][]string // ids after each action, newest first
	maker map[scene]map[string]int
}

// newExitView runs the case once in this process, in sync mode, and works out what exit keeps of it.
func newExitView(ctx context.Context, c *source, name string) (*exitView, error) {
	r, err := newRun(c.doc, c.text, name)
	if err != nil {
		return nil, err
	}
	r.states = func(int) bool { return false }
	w := &witness{doc: c.doc, lists: map[scene][][]string{}, maker: map[scene]map[string]int{}}
	r.after = func(ctx context.Context, i int) error { return w.look(ctx, r, i) }
	if _, err := r.on(ctx, memoryEngine{}); err != nil {
		return nil, fmt.Errorf("in sync mode, to know what exit keeps of it: %w", err)
	}
	return w.view()
}

// look notes the checkpoints that the case uses anywhere, as they are after an action.
func (w *witness) look(ctx context.Context, r *run, i int) error {
	seen := map[scene]bool{}
	for k := range w.doc.Actions {
		a := &w.doc.Actions[k]
		at := sceneOf(a)
		if !a.usesHistory() || seen[at] {
			continue
		}
		seen[at] = true
		list, err := r.threads.history(ctx, place{thread: a.thread(), subgraph: a.Subgraph})
		if err != nil && len(a.Subgraph) == 0 {
			return fmt.Errorf("reading the history: %w", err)
		}
		w.note(at, i, list) // a subgraph that is not under way has none
	}
	return nil
}

func (w *witness) note(at scene, i int, list []*pregel.Snapshot) {
	if w.maker[at] == nil {
		w.maker[at] = map[string]int{}
	}
	ids := make([]string, len(list))
	for k, s := range list {
		ids[k] = s.Checkpoint
		if _, known := w.maker[at][s.Checkpoint]; !known {
			w.maker[at][s.Checkpoint] = i
		}
	}
	w.lists[at] = append(w.lists[at], ids)
}

// view is what exit keeps. A case whose graph cannot be built has no actions to speak of.
func (w *witness) view() (*exitView, error) {
	v := &exitView{inSync: make([]bool, len(w.doc.Actions)), from: map[int]int{}, shown: map[int][]int{}}
	named := make(map[int]string)
	for i := range w.doc.Actions {
		a := &w.doc.Actions[i]
		if w.isCommandSeen(i) {
			v.inSync[i], v.cut = true, true
		}
		if a.FromCheckpoint == nil || len(w.lists) == 0 {
			continue
		}
		list, k := w.before(sceneOf(a), i), *a.FromCheckpoint
		if k < 0 || k >= len(list) {
			return nil, fmt.Errorf("action %d: from_checkpoint is %d, but the history has %d checkpoints", i, k, len(list))
		}
		named[i] = list[k]
		if !w.keeps(v, sceneOf(a), list[k]) {
			v.inSync[w.maker[sceneOf(a)][list[k]]], v.cut = true, true
		}
	}
	for i := range w.doc.Actions {
		a := &w.doc.Actions[i]
		if !a.usesHistory() || len(w.lists) == 0 {
			continue
		}
		list := w.before(sceneOf(a), i)
		shown := []int{}
		for k, id := range list {
			if id == named[i] && a.FromCheckpoint != nil {
				v.from[i] = len(shown)
			}
			if w.keeps(v, sceneOf(a), id) {
				shown = append(shown, k)
			}
		}
		if a.History {
			v.shown[i], v.cut = shown, v.cut || len(shown) < len(list)
		}
	}
	return v, nil
}

// isCommandSeen reports whether an action is a command with writes and a later one uses the history of its thread.
func (w *witness) isCommandSeen(i int) bool {
	c := w.doc.Actions[i].Command
	if c == nil || c.Update == nil && c.Goto == nil {
		return false
	}
	return slices.ContainsFunc(w.doc.Actions[i+1:], func(a action) bool {
		return a.usesHistory() && a.thread() == w.doc.Actions[i].thread()
	})
}

// before is a list of checkpoints as an action finds it.
func (w *witness) before(at scene, i int) []string {
	if i == 0 {
		return nil
	}
	return w.lists[at][i-1]
}

// keeps reports whether a checkpoint is kept.
func (w *witness) keeps(v *exitView, at scene, id string) bool {
	maker := w.maker[at][id]
	a := &w.doc.Actions[maker]
	return !a.isRun() || a.Durability != "" || v.inSync[maker] || w.lists[at][maker][0] == id
}

// durability is the mode of a run action that names none.
func (v *exitView) durability(i int) string {
	if v.inSync[i] {
		return string(graphadapter.DurabilitySync)
	}
	return modeExit
}

// expected is a result without what exit does not keep.
func (v *exitView) expected(i int, result any) any {
	shown, cut := v.shown[i]
	fields, _ := result.(map[string]any)
	list, _ := fields["history"].([]any)
	if !cut || list == nil {
		return result
	}
	kept := []any{}
	for _, k := range shown {
		if k >= len(list) {
			return result // it is not the history that we make: the difference shows
		}
		line := without(list[k].(map[string]any), "parent")
		line["parent"] = keptParent(list, shown, k)
		kept = append(kept, line)
	}
	out := without(fields, "history")
	out["history"] = kept
	return out
}

// keptParent is the place, among those shown, of the nearest one on the way back from a line of a history.
func keptParent(list []any, shown []int, k int) any {
	for {
		parent, ok := list[k].(map[string]any)["parent"].(int64)
		if !ok || int(parent) <= k || int(parent) >= len(list) {
			return nil
		}
		k = int(parent)
		if at := slices.Index(shown, k); at >= 0 {
			return int64(at)
		}
	}
}
