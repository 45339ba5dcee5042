package taskrun

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// TestRoutes reads testdata/branch: a branch's declaration, what it returns, and what comes of it.
//
//	route labels=(yes=pay,no=__end__) targets=(pay,other)
//	to yes
//	send other {"n":1}
func TestRoutes(t *testing.T) {
	datadriven.RunTest(t, "testdata/branch", func(t *testing.T, d *datadriven.TestData) string {
		chosen := parseTargets(t, d)
		g := oneNode(func(context.Context, graphadapter.Input) (pregel.Command, error) { return pregel.Command{}, nil })
		node := g.Nodes["pay"]
		node.Branches = []graphadapter.BranchFunc{func(context.Context, graphadapter.State) ([]pregel.Target, error) { return chosen, nil }}
		g.Nodes["pay"] = node
		task := payTask()
		task.Branches = []pregel.Branch{declaration(d)}
		out, err := RunAttempt(t.Context(), g, task, Env{Thread: "r-7"})
		if err != nil {
			return fmt.Sprintf("%T: %v\n", err, err)
		}
		var text strings.Builder
		for _, target := range out.Routes {
			if target.Send {
				fmt.Fprintf(&text, "send %s %s\n", target.Node, target.Arg)
			} else {
				fmt.Fprintf(&text, "to %s\n", target.Node)
			}
		}
		return text.String()
	})
}

func declaration(d *datadriven.TestData) pregel.Branch {
	b := pregel.Branch{From: "pay"}
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "targets":
			b.Targets = append([]string{}, arg.Vals...)
		case "labels":
			b.Labels = map[string]string{}
			for _, pair := range arg.Vals {
				label, node, _ := strings.Cut(pair, ">")
				b.Labels[label] = node
			}
		}
	}
	return b
}

func parseTargets(t *testing.T, d *datadriven.TestData) (targets []pregel.Target) {
	t.Helper()
	for _, line := range strings.Split(d.Input, "\n") {
		verb, rest, _ := strings.Cut(line, " ")
		switch verb {
		case "to":
			targets = append(targets, pregel.Target{Node: rest})
		case "send":
			node, arg, _ := strings.Cut(rest, " ")
			target := pregel.Target{Node: node, Send: true}
			if arg != "" {
				target.Arg = pregel.Value(arg)
			}
			targets = append(targets, target)
		case "":
		default:
			d.Fatalf(t, "unknown line %q", line)
		}
	}
	return targets
}

func TestBranchSeesItsOwnWrites(t *testing.T) {
	g := oneNode(func(context.Context, graphadapter.Input) (pregel.Command, error) {
		return pregel.Command{Update: []pregel.Write{write("amount", "9"), write("log", `["b"]`)}}, nil
	})
	var seen graphadapter.State
	node := g.Nodes["pay"]
	node.Branches = []graphadapter.BranchFunc{
		func(_ context.Context, s graphadapter.State) ([]pregel.Target, error) { seen = s; return nil, nil },
		func(ctx context.Context, _ graphadapter.State) ([]pregel.Target, error) {
			run, ok := TaskFrom(ctx)
			if !ok || run.Info().Node != "pay" {
				return nil, errors.New("a branch has no task")
			}
			return []pregel.Target{{Node: "other"}}, nil
		},
	}
	g.Nodes["pay"] = node
	task := payTask()
	task.State["log"] = pregel.Hold(pregel.Value(`["a"]`))
	task.Branches = []pregel.Branch{{From: "pay"}, {From: "pay", Ordinal: 1}}
	out, err := RunAttempt(t.Context(), g, task, Env{})
	if err != nil {
		t.Fatal(err)
	}
	if seen["amount"].String() != "9" || seen["log"].String() != `["a","b"]` {
		t.Errorf("the branch saw %s", seen)
	}
	if len(out.Routes) != 1 || out.Routes[0].Node != "other" {
		t.Errorf("routes %+v", out.Routes)
	}
	if task.State["log"].String() != `["a"]` {
		t.Errorf("the task's state was changed: %s", task.State["log"].Value())
	}
}

func TestRouteOnly(t *testing.T) {
	g := oneNode(func(context.Context, graphadapter.Input) (pregel.Command, error) { panic("the node ran") })
	g.Nodes["sub"] = graphadapter.Node{Branches: []graphadapter.BranchFunc{func(_ context.Context, s graphadapter.State) ([]pregel.Target, error) {
		return []pregel.Target{{Node: string(s["amount"].Value())}}, nil
	}}}
	task := payTask()
	task.Node, task.Path, task.RouteOnly = "sub", "sub", true
	task.Done = pregel.Command{Update: []pregel.Write{write("amount", "9")}}
	task.Branches = []pregel.Branch{{From: "sub"}}
	out, err := RunAttempt(t.Context(), g, task, Env{})
	if err != nil || len(out.Routes) != 1 || out.Routes[0].Node != "9" || len(out.Update) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestBranchFails(t *testing.T) {
	boom := errors.New("boom")
	for name, branch := range map[string]graphadapter.BranchFunc{
		"error": func(context.Context, graphadapter.State) ([]pregel.Target, error) { return nil, boom },
		"panic": func(context.Context, graphadapter.State) ([]pregel.Target, error) { panic(boom) },
	} {
		g := oneNode(func(context.Context, graphadapter.Input) (pregel.Command, error) {
			return pregel.Command{Update: []pregel.Write{write("amount", "9")}}, nil
		})
		g.Nodes["pay"] = graphadapter.Node{Run: g.Nodes["pay"].Run, Branches: []graphadapter.BranchFunc{branch}}
		task := payTask()
		task.Branches = []pregel.Branch{{From: "pay"}}
		out, err := RunAttempt(t.Context(), g, task, Env{})
		if !errors.Is(err, boom) || out.Update != nil {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
}

func TestBranchAsks(t *testing.T) {
	g := oneNode(func(context.Context, graphadapter.Input) (pregel.Command, error) { return pregel.Command{}, nil })
	g.Nodes["pay"] = graphadapter.Node{Run: g.Nodes["pay"].Run, Branches: []graphadapter.BranchFunc{
		func(ctx context.Context, _ graphadapter.State) ([]pregel.Target, error) {
			run, _ := TaskFrom(ctx)
			answer, err := run.Ask(ctx, pregel.Value(`"where?"`), nil, "")
			return []pregel.Target{{Node: strings.Trim(string(answer), `"`)}}, err
		},
	}}
	task := payTask()
	task.Branches = []pregel.Branch{{From: "pay"}}
	out, err := RunAttempt(t.Context(), g, task, Env{})
	if err != nil || len(out.Questions) != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	task.Answers = []pregel.Answer{{QuestionID: out.Questions[0].ID, Value: pregel.Value(`"other"`)}}
	out, err = RunAttempt(t.Context(), g, task, Env{})
	if err != nil || len(out.Routes) != 1 || out.Routes[0].Node != "other" {
		t.Errorf("%+v, %v", out, err)
	}
}
