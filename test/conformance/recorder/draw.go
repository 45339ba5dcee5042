package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"

	"superstep.dev/test/conformance/casegen"
	"superstep.dev/test/conformance/trace"
)

// kinds are the kinds of cases that can be drawn.
var kinds = map[string]casegen.Options{
	"random": {Recorded: true},
	"wide":   {Recorded: true, Wide: true},
}

// recordings is how often LangGraph is asked for the same case before its answer counts as stable.
const recordings = 3

// largest is the size of the largest drawn case that is kept, in bytes: states that double with every round grow larger.
const largest = 100_000

// drawnCase is one line of a file of drawn cases, in the order of FORMAT.md.
type drawnCase struct {
	Name    string          `json:"name"`
	About   string          `json:"about"`
	Tags    []string        `json:"tags"`
	Graph   json.RawMessage `json:"graph"`
	Graphs  json.RawMessage `json:"graphs,omitempty"`
	Actions json.RawMessage `json:"actions"`
	Expect  json.RawMessage `json:"expect"`
}

// draws says which cases are drawn.
type draws struct {
	kind    string
	seed    uint64
	version string
}

// one draws a case and records it. It is nil, with the reason, when the answer is not stable, is too large or took too
// long.
func (d draws) one(ctx context.Context, p *pool, number int) (*drawnCase, error) {
	name := fmt.Sprintf("%s-%d-%d", d.kind, d.seed, number)
	random := rand.New(rand.NewPCG(d.seed, uint64(number)))
	doc := casegen.Case(func(least, most int, _ string) int { return least + random.IntN(most-least+1) }, name, kinds[d.kind])
	out := &drawnCase{Name: name, Tags: doc["tags"].([]string)}
	out.About = fmt.Sprintf("Drawn, seed %d, number %d, recorded from LangGraph %s.", d.seed, number, d.version)
	first, err := d.ask(ctx, p, doc, true)
	if err != nil {
		return nil, err
	}
	doc["actions"] = first.Actions
	for range recordings - 1 {
		again, err := d.ask(ctx, p, doc, false)
		if err != nil {
			return nil, err
		}
		if diff := trace.Compare("expect", inOrder(first.Expect), inOrder(again.Expect)); diff != nil {
			return nil, fmt.Errorf("the answer is not stable: %s", diff)
		}
	}
	if len(first.Expect) != len(first.Actions) {
		return nil, fmt.Errorf("the graph cannot be built")
	}
	if err := out.fill(doc, first); err != nil {
		return nil, err
	}
	if size := len(out.Graph) + len(out.Graphs) + len(out.Expect); size > largest {
		return nil, fmt.Errorf("it is too large: %d bytes", size)
	}
	return out, nil
}

func (d draws) ask(ctx context.Context, p *pool, doc casegen.Doc, drawn bool) (*recording, error) {
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("the drawn case is no JSON: %w", err)
	}
	return p.record(ctx, request{Case: text, Drawn: drawn})
}

func (c *drawnCase) fill(doc casegen.Doc, r *recording) (err error) {
	for _, part := range []struct {
		into *json.RawMessage
		v    any
	}{{&c.Graph, doc["graph"]}, {&c.Graphs, doc["graphs"]}} {
		if part.v == nil {
			continue
		}
		if *part.into, err = json.Marshal(part.v); err != nil {
			return fmt.Errorf("the drawn case is no JSON: %w", err)
		}
	}
	c.Actions, c.Expect = trace.Encode(r.Actions), trace.Encode(r.Expect)
	return nil
}

// generated is what became of a number.
type generated struct {
	made *drawnCase
	why  error
}

// generate draws and records n cases and writes them to a file, one a line. Numbers whose case is not kept are said and
// passed over.
func (c *command) generate(ctx context.Context, p *pool) error {
	if _, err := os.Stat(c.paths[0]); err == nil && !c.write {
		return fmt.Errorf("%s is there already: with -write it is written anew", c.paths[0])
	}
	d := draws{kind: c.kind, seed: c.seed, version: c.version}
	var lines []byte
	kept, dropped := 0, 0
	for from := 0; kept < c.count; {
		batch := make([]generated, c.count-kept)
		p.each(ctx, len(batch), func(i int) { batch[i].made, batch[i].why = d.one(ctx, p, from+i) })
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("stopped: %w", err)
		}
		for i, g := range batch {
			if g.why != nil {
				dropped++
				c.say("%s-%d-%d is left out: %v", d.kind, d.seed, from+i, g.why)
				continue
			}
			line, err := json.Marshal(g.made)
			if err != nil {
				return fmt.Errorf("encoding a case: %w", err)
			}
			lines = append(append(lines, line...), '\n')
			kept++
		}
		from += len(batch)
		if kept == 0 && dropped >= 20 {
			return fmt.Errorf("none of %d drawn cases could be recorded", dropped)
		}
	}
	if err := os.WriteFile(c.paths[0], lines, 0o644); err != nil { //nolint:gosec // cases are public
		return fmt.Errorf("writing cases: %w", err)
	}
	c.done("%d %s cases of seed %d recorded from LangGraph %s in %s, %d left out", kept, d.kind, d.seed, d.version, c.paths[0], dropped)
	return nil
}
