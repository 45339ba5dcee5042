package publish

import (
	"context"
	"fmt"
	"strings"

	"superstep.dev"
)

// Writer writes sections: a language model, or whoever takes its place.
type Writer interface {
	// Write returns the text of one section.
	Write(ctx context.Context, b Brief) (string, error)
}

// Brief is what a writer is told.
type Brief struct {
	Title   string `json:"title"`
	Heading string `json:"heading"`
	// Note says what to change, "" at first.
	Note string `json:"note,omitempty"`
}

const (
	// maxWords is how long a section may be.
	maxWords = 40
	// maxTries is how often a section is written before it is taken as it is: the reviewer sees it.
	maxTries = 3
)

// Section is one section while it is written.
type Section struct {
	Title   superstep.Value[string] `json:"title"`
	Heading superstep.Value[string] `json:"heading"`
	Note    superstep.Value[string] `json:"note"`
	Text    superstep.Value[string] `json:"text"`
	Tries   superstep.Sum[int]      `json:"tries"`
	// Texts is the article's field of that name: what the section puts into it is merged there.
	Texts superstep.Map[string] `json:"texts"`
}

// finished is what a section hands to its article.
type finished struct {
	Texts superstep.Map[string] `json:"texts"`
}

func sectionGraph(w Writer) *superstep.Graph[Section] {
	g := superstep.NewStateGraph[Section]("section")
	g.AddNode("write", write(w), superstep.WithRetry(again))
	g.AddCommandNode("check", check)
	g.AddEdge(superstep.Start, "write")
	g.AddEdge("write", "check")
	return g.MustCompile(superstep.WithOutput[finished]())
}

// write calls the writer in a Task: what it wrote is remembered, whatever happens to the worker afterwards.
func write(w Writer) func(context.Context, Section) (Section, error) {
	return func(ctx context.Context, s Section) (Section, error) {
		text, err := superstep.Task(ctx, "write", func(ctx context.Context) (string, error) {
			return w.Write(ctx, Brief{Title: s.Title.Get(), Heading: s.Heading.Get(), Note: s.Note.Get()})
		})
		if err != nil {
			return s, err
		}
		s.Text.Set(strings.Join(strings.Fields(text), " "))
		s.Tries.Add(1)
		return s, nil
	}
}

// check sends a section back that is too long.
func check(_ context.Context, s Section) (superstep.Command[Section], error) {
	if n := len(strings.Fields(s.Text.Get())); n > maxWords && s.Tries.Get() < maxTries {
		s.Note.Set(fmt.Sprintf("%d words are too many: at most %d", n, maxWords))
		return superstep.Command[Section]{Update: s, Goto: superstep.To("write")}, nil
	}
	s.Texts.Put(s.Heading.Get(), s.Text.Get())
	return superstep.Command[Section]{Update: s, Goto: superstep.To(superstep.End)}, nil
}
