package protocol

import (
	"encoding/json"
	"slices"

	"superstep.dev/graphadapter/pregel"
)

// Lines are checkpoints as a run tells the thread's next one of them, oldest first. Each run's end, and each start, has up to
// [CarriedLines] of them, so in JSON each leaves out what follows from the one before: that it is a superstep later, behind that
// checkpoint, and all else the same. A line of a loop is its checkpoint's id alone, some 30 bytes instead of 190. Reading gives the
// lines as they were written, but no names for an empty list of them; the errors are those of encoding/json.
type Lines []Line

// lineJSON is a line without what follows from the one before.
type lineJSON struct {
	Step       *int           `json:"step,omitempty"`
	Checkpoint string         `json:"checkpoint"`
	Parent     *string        `json:"parent,omitempty"`
	Source     *pregel.Source `json:"source,omitempty"`
	Ran        *[]string      `json:"ran,omitempty"`
	Wrote      *[]string      `json:"wrote,omitempty"`
	Next       *[]string      `json:"next,omitempty"`
	Run        *string        `json:"run,omitempty"`
	At         *int64         `json:"at_ms,omitempty"`
}

// follows is the line behind before of which all but the checkpoint is left out.
func follows(before Line) Line {
	before.Step++
	before.Parent, before.Checkpoint = before.Checkpoint, ""
	return before
}

// MarshalJSON implements json.Marshaler.
func (all Lines) MarshalJSON() ([]byte, error) {
	out, before := make([]lineJSON, len(all)), Line{}
	for i, l := range all {
		expected := follows(before)
		out[i] = lineJSON{Step: unless(expected.Step, l.Step), Checkpoint: l.Checkpoint, Parent: unless(expected.Parent, l.Parent),
			Source: unless(expected.Source, l.Source), Ran: unlessNames(expected.Ran, l.Ran), Wrote: unlessNames(expected.Wrote, l.Wrote),
			Next: unlessNames(expected.Next, l.Next), Run: unless(expected.Run, l.Run), At: unless(expected.At, l.At)}
		before = l
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements json.Unmarshaler.
func (all *Lines) UnmarshalJSON(text []byte) error {
	var in []lineJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*all = make(Lines, 0, len(in))
	before := Line{}
	for _, j := range in {
		l := follows(before)
		l.Checkpoint = j.Checkpoint
		set(&l.Step, j.Step)
		set(&l.Parent, j.Parent)
		set(&l.Source, j.Source)
		setNames(&l.Ran, j.Ran)
		setNames(&l.Wrote, j.Wrote)
		setNames(&l.Next, j.Next)
		set(&l.Run, j.Run)
		set(&l.At, j.At)
		*all = append(*all, l)
		before = l
	}
	return nil
}

// unless is v, nil where it is as expected.
func unless[T comparable](expected, v T) *T {
	if v == expected {
		return nil
	}
	return &v
}

func unlessNames(expected, names []string) *[]string {
	if slices.Equal(expected, names) {
		return nil
	}
	if names == nil {
		names = []string{}
	}
	return &names
}

func set[T any](field, to *T) {
	if to != nil {
		*field = *to
	}
}

// setNames is set where no names are nil.
func setNames(field, to *[]string) {
	set(field, to)
	if len(*field) == 0 {
		*field = nil
	}
}
