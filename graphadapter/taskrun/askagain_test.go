package taskrun

import (
	"context"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// TestAnAnswerOfAnOlderSchemaIsSetAside: a node that asks for something else by now asks again, under another id, and takes
// the answer that fits; it does not fail on the old one, which would be there at every retry.
func TestAnAnswerOfAnOlderSchemaIsSetAside(t *testing.T) {
	var got pregel.Value
	asks := func(schema string) *graphadapter.Graph {
		return &graphadapter.Graph{Spec: &pregel.Spec{Version: pregel.SpecVersion, Name: "g", Channels: []pregel.ChannelSpec{{Name: "n", Kind: pregel.KindLast}},
			Nodes: []pregel.NodeSpec{{Name: "ask"}}, Edges: []pregel.Edge{{From: pregel.Start, To: "ask"}}},
			Nodes: map[string]graphadapter.Node{"ask": {Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
				task, _ := TaskFrom(ctx)
				v, err := task.Ask(ctx, pregel.Value(`"how many?"`), pregel.Value(schema), "")
				got = v
				return pregel.Command{}, err
			}}}}
	}
	number, text := asks(`{"type":"integer"}`), asks(`{"type":"string"}`)
	task := &pregel.Task{Node: "ask", Path: "ask", Step: 1}
	run := func(g *graphadapter.Graph) pregel.Outcome {
		t.Helper()
		o, err := RunAttempt(t.Context(), g, task, Env{Thread: "t"})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	first := run(number).Questions[0]
	task.Answers = []pregel.Answer{{QuestionID: first.ID, Value: pregel.Value(`7`)}}
	again := run(text)
	if len(again.Questions) != 1 || again.Questions[0].ID == first.ID || string(again.Questions[0].Schema) != `{"type":"string"}` {
		t.Fatalf("it asks %+v", again.Questions)
	}
	if same := run(text).Questions; len(same) != 1 || same[0].ID != again.Questions[0].ID {
		t.Errorf("run once more it asks %+v", same)
	}
	task.Answers = append(task.Answers, pregel.Answer{QuestionID: again.Questions[0].ID, Value: pregel.Value(`"seven"`)})
	if o := run(text); len(o.Questions) != 0 || string(got) != `"seven"` {
		t.Errorf("it asks %+v and has %s", o.Questions, got)
	}
	if o := run(number); len(o.Questions) != 0 || string(got) != `7` {
		t.Errorf("the build that asked first asks %+v and has %s", o.Questions, got)
	}
}
