package pregel_test

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/datadriven"

	"superstep.dev/graphadapter/pregel"
)

// edit updates the state from outside. Its input is written like an outcome; routes are those that the branches of the
// node chose. No input writes nothing.
func (s *session) edit(d *datadriven.TestData) error {
	asNode, path := "", []string(nil)
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "as":
			asNode = nodeName(arg.Vals[0])
		case "in":
			path = arg.Vals
		case "at":
			s.thread = s.thread.At(s.records[number(strings.TrimPrefix(arg.Vals[0], "#"))])
		}
	}
	o, err := outcomeOf(d.Input, nil)
	if err != nil {
		return err
	}
	e, err := s.beginEdit(path, o.Update, asNode)
	if err != nil {
		return err
	}
	if task := e.Task(); task != nil {
		fmt.Fprintf(&s.out, "evaluate the branches of %s at step %d on %s after%s\n", task.Node, task.Step,
			valuesText(task.State), writesText(task.Done.Update))
	}
	r, err := e.Apply(o.Routes)
	if err != nil {
		return err
	}
	if path == nil {
		s.records = append(s.records, r)
	}
	snapshot, err := s.program.Snapshot(s.thread, s.thread.Head, true)
	if err != nil {
		return err
	}
	s.showSnapshot(snapshot, "")
	return nil
}

func (s *session) beginEdit(path []string, values []pregel.Write, asNode string) (*pregel.Edit, error) {
	if path == nil {
		return s.program.Edit(s.thread, values, asNode)
	}
	return s.program.EditWithin(s.thread, path, values, asNode)
}
