// Package publish is Superstep's example of map and reduce: the sections of an article are written in parallel, each by
// a graph of its own, a person reviews the whole, and a site gets it exactly once.
//
//	START ─ a Send for each section ─→ section ─→ review ─┬─ publish ─→ publish → END
//	                                      ↑               ├─ revise: a Send for each section named
//	                                      └───────────────┘─ drop ─→ END
//
//	section:  START → write → check ─┬─ fits ─→ END
//	                    ↑────────────┘─ too long, up to three times
//
// What it shows:
//   - AddConditionalEdges from Start with Sends: one task for each section, all in one superstep, and review runs once
//     after them;
//   - a subgraph that a Send reaches: its argument is the subgraph's input, its field that both have is merged by the
//     reducer of the article, key by key, so that a revised section takes the place of the old one;
//   - a question with a schema of its own ([Review]), and a node that goes where the answer says;
//   - an Effect on another service ([site.Client]) that is looked up after a crash.
//
// The input is a title and the headings:
//
//	{"title": "Tea", "headings": ["Leaves", "Water"]}
package publish

import (
	"context"
	"errors"
	"slices"
	"time"

	"superstep.dev"
	"superstep.dev/examples/publish/site"
)

// Site is what the graph needs of the site; [site.Client] is one.
type Site interface {
	Publish(ctx context.Context, key string, a site.Article) (site.Page, error)
	FindPage(ctx context.Context, key string) (site.Page, bool, error)
	Withdraw(ctx context.Context, p site.Page) error
}

// Input is what a run starts with.
type Input struct {
	Title    superstep.Value[string]   `json:"title"`
	Headings superstep.Value[[]string] `json:"headings"`
}

// State is the article while it is made.
type State struct {
	Input
	// Texts are the sections' texts by their headings.
	Texts superstep.Map[string]      `json:"texts"`
	Page  superstep.Value[site.Page] `json:"page"`
}

// Graph returns the graph over a writer and a site.
func Graph(w Writer, s Site) *superstep.Graph[State] {
	publish := publishEffect(s)
	g := superstep.NewStateGraph[State]("publish")
	g.AddEffect(publish)
	g.AddSubgraph("section", sectionGraph(w))
	g.AddCommandNode("review", review)
	g.AddNode("publish", publishArticle(publish), superstep.WithRetry(again), superstep.WithTimeout(time.Minute, 0))
	g.AddConditionalEdges(superstep.Start, everySection, "section")
	g.AddEdge("section", "review")
	g.AddEdge("publish", superstep.End)
	return g.MustCompile(superstep.WithInput[Input]())
}

// errHeadings says that no article can be made of an input.
var errHeadings = errors.New("an article needs headings, each another one")

func everySection(_ context.Context, s State) ([]superstep.Target, error) {
	headings := slices.Sorted(slices.Values(s.Headings.Get()))
	if len(headings) == 0 || len(slices.Compact(headings)) < len(s.Headings.Get()) {
		return nil, superstep.Permanent(errHeadings)
	}
	return sections(s, s.Headings.Get(), ""), nil
}

// sections sends sections to be written; a note says what to change.
func sections(s State, headings []string, note string) []superstep.Target {
	args := make([]Brief, len(headings))
	for i, heading := range headings {
		args[i] = Brief{Title: s.Title.Get(), Heading: heading, Note: note}
	}
	return superstep.SendEach("section", args)
}

// publishEffect is the write that must happen once. The site makes a second call with the same key a no-op, and can be
// asked what it has under a key.
func publishEffect(s Site) *superstep.Effect[site.Article, site.Page] {
	return &superstep.Effect[site.Article, site.Page]{
		Name: "site.publish", Target: superstep.TargetKeyed,
		Do: s.Publish,
		Lookup: func(ctx context.Context, key string, _ site.Article) (superstep.Finding[site.Page], error) {
			page, found, err := s.FindPage(ctx, key)
			if !found {
				return superstep.Finding[site.Page]{Status: superstep.FindingNotFound}, err
			}
			return superstep.Finding[site.Page]{Status: superstep.FindingCommitted, Receipt: page}, err
		},
		Compensate: func(ctx context.Context, _ string, _ site.Article, page site.Page) error {
			return s.Withdraw(ctx, page)
		},
	}
}

// again repeats what the site could not do for the moment. What it refused says of itself that no repetition helps.
var again = superstep.RetryPolicy{
	InitialInterval: 200 * time.Millisecond, MaxAttempts: 5, MaxInterval: 5 * time.Second, NoJitter: true,
}

func publishArticle(publish *superstep.Effect[site.Article, site.Page]) func(context.Context, State) (State, error) {
	return func(ctx context.Context, s State) (State, error) {
		page, err := publish.Call(ctx, article(s))
		if err != nil {
			return s, err
		}
		s.Page.Set(page)
		return s, superstep.Emit(ctx, "published as "+page.ID)
	}
}
