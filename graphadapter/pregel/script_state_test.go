package pregel_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cockroachdb/datadriven"

	"superstep.dev/graphadapter/pregel"
)

func (s *session) showState(d *datadriven.TestData) error {
	record, newest := s.thread.Head, true
	for _, arg := range d.CmdArgs {
		if arg.Key == "at" {
			record, newest = s.records[number(strings.TrimPrefix(arg.Vals[0], "#"))], false
		}
	}
	snapshot, err := s.program.Snapshot(s.thread, record, newest)
	if err != nil {
		return err
	}
	s.showSnapshot(snapshot, "")
	return nil
}

func (s *session) showSnapshot(snapshot *pregel.Snapshot, indent string) {
	fmt.Fprintf(&s.out, "%sstep %d %s next [%s]\n", indent, snapshot.Step, valuesText(snapshot.Values), strings.Join(snapshot.Next, " "))
	for _, task := range snapshot.Tasks {
		fmt.Fprintf(&s.out, "%s  %s", indent, task.Path)
		if task.Done {
			s.out.WriteString(" finished")
		}
		if len(task.Questions) > 0 {
			s.out.WriteString(" asked" + questionsText(task.Questions))
		}
		if task.Error != nil {
			s.out.WriteString(" failed " + task.Error.Type)
		}
		s.out.WriteByte('\n')
		if task.State != nil {
			s.showSnapshot(task.State, indent+"    ")
		}
	}
}

// showHistory lists the root graph's checkpoints, with the number of each one's parent.
func (s *session) showHistory() {
	at := map[string]int{}
	for i, r := range s.records {
		c := r.Checkpoint
		parent := "none"
		if n, ok := at[c.Parent]; ok {
			parent = fmt.Sprintf("#%d", n)
		}
		at[c.ID] = i
		branch := ""
		if c.Branch != "" {
			branch = " branch " + c.Branch
		}
		fmt.Fprintf(&s.out, "#%d step %d (%s) parent %s seq %d%s next [%s]\n", i, c.Step, c.Source, parent, c.Seq, branch,
			strings.Join(s.program.Next(r), " "))
	}
}

// showCheckpoint shows what the newest checkpoint stores: values with versions, and what each node has seen.
func (s *session) showCheckpoint() error {
	stored, err := s.program.EncodeThread(s.thread)
	if err != nil {
		return err
	}
	var thread struct {
		Head struct {
			Checkpoint struct {
				Values   map[string]json.RawMessage
				Sends    []json.RawMessage
				Joins    map[string][]string
				Finished []string
				Versions map[string]int64
				Seen     map[string]map[string]int64
				Updated  []string
			}
		}
	}
	if err := json.Unmarshal(stored, &thread); err != nil {
		return err
	}
	c := thread.Head.Checkpoint
	for _, name := range slices.Sorted(maps.Keys(c.Versions)) {
		value := "empty"
		switch {
		case c.Values[name] != nil:
			value = string(c.Values[name])
		case c.Joins[name] != nil:
			value = fmt.Sprint(c.Joins[name])
		case name == "__pregel_tasks" && len(c.Sends) > 0:
			value = fmt.Sprintf("%s", c.Sends)
		}
		marks := ""
		if slices.Contains(c.Finished, name) {
			marks += " finished"
		}
		if slices.Contains(c.Updated, name) {
			marks += " updated"
		}
		fmt.Fprintf(&s.out, "%s v%d = %s%s\n", name, c.Versions[name], value, marks)
	}
	for _, node := range slices.Sorted(maps.Keys(c.Seen)) {
		fmt.Fprintf(&s.out, "%s has seen %v\n", node, c.Seen[node])
	}
	return nil
}
