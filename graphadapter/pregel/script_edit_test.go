package pregel_test

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/datadriven"

	"superstep.dev/graphadapter/pregel"
)

// edit updates the state from outside, in one superstep. Each line of its input is one update, written like an outcome
// behind the node it is of; routes are those that the branches of the node chose. "?" is the node to infer. What stands
// behind AS-COPY is updated on top of the copy.
func (s *session) edit(d *datadriven.TestData) error {
	var path []string
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "in":
			path = arg.Vals
		case "at":
			s.thread = s.thread.At(s.records[number(strings.TrimPrefix(arg.Vals[0], "#"))], pregel.ForReplay)
		}
	}
	updates, routes, err := updatesOf(lines(d.Input))
	if err != nil {
		return err
	}
	e, err := s.program.Edit(s.thread, path, updates)
	if err != nil {
		return err
	}
	var chosen [][]pregel.Target
	for _, task := range e.Tasks() {
		fmt.Fprintf(&s.out, "evaluate the branches of %s as %s at step %d on %s after%s\n", task.Node, task.Path, task.Step,
			valuesText(task.State), writesText(task.Done.Update))
		name := task.Node
		if len(routes[name]) == 0 {
			name = "" // it was inferred
		}
		chosen, routes[name] = append(chosen, routes[name][0]), routes[name][1:]
	}
	records, err := e.Apply(chosen)
	if err != nil {
		return err
	}
	if path == nil {
		s.records = append(s.records, records...)
	}
	snapshot, err := s.program.Snapshot(s.thread, s.thread.Head, true)
	if err != nil {
		return err
	}
	s.showSnapshot(snapshot, "")
	return nil
}

// updatesOf reads updates, and the routes of each node's in turn.
func updatesOf(text []string) ([]pregel.Update, map[string][][]pregel.Target, error) {
	var updates []pregel.Update
	routes := map[string][][]pregel.Target{}
	for i, line := range text {
		name, rest, _ := strings.Cut(line, " ")
		switch name {
		case "AS-INPUT":
			updates = append(updates, pregel.Update{AsNode: pregel.AsInput, Input: pregel.Value(rest)})
			continue
		case "AS-COPY":
			copied, routes, err := updatesOf(text[i+1:])
			return append(updates, pregel.Update{AsNode: pregel.AsCopy, Copied: copied}), routes, err
		case "?":
			name = ""
		}
		o, err := outcomeOf(rest, nil)
		if err != nil {
			return nil, nil, err
		}
		node := nodeName(name)
		updates = append(updates, pregel.Update{AsNode: node, Values: o.Update})
		routes[node] = append(routes[node], o.Routes)
	}
	return updates, routes, nil
}
