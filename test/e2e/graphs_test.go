package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"superstep.dev"
)

// work is the state of the graphs that tests steer. Dir is the directory by which they do.
type work struct {
	Dir  superstep.Value[string]                `json:"dir"`
	Note superstep.Value[string]                `json:"note"`
	Size superstep.Value[int]                   `json:"size"`
	Log  superstep.List[string]                 `json:"log"`
	Best superstep.Reduced[string, lastOfNames] `json:"best"`
}

// graphs are what this binary serves as a program.
func graphs() []superstep.Runnable {
	return []superstep.Runnable{adds(), pair(), slow(), deadly(), reduces(), applies(), large(), piles(), hoards(), asks(), tells(),
		chooses(), nests(), fuses(), reconciles(), settles(), spends(), recalls(), brisk(), stubborn()}
}

// adds notes its input: a thread's runs add up.
func adds() *superstep.Graph[work] {
	return oneNode("adds", func(_ context.Context, s work) (work, error) {
		s.Log.Append(s.Note.Get())
		return s, nil
	})
}

// pair runs two nodes at once, and one after both. The node "shaky" waits for the file "go", and fails while there is
// a file "broken".
func pair() *superstep.Graph[work] {
	g := superstep.NewStateGraph[work]("pair")
	g.AddNode("steady", func(_ context.Context, s work) (work, error) { return ran(s, "steady") })
	g.AddNode("shaky", func(ctx context.Context, s work) (work, error) {
		s, err := ran(s, "shaky")
		if err == nil {
			err = await(ctx, s, "go")
		}
		if err == nil && exists(s, "broken") {
			err = errors.New("it is broken")
		}
		return s, err
	})
	g.AddNode("after", func(_ context.Context, s work) (work, error) { return ran(s, "after") })
	g.AddEdge(superstep.Start, "steady")
	g.AddEdge(superstep.Start, "shaky")
	g.AddJoin([]string{"steady", "shaky"}, "after")
	return g.MustCompile()
}

// slow waits for the file "go".
func slow() *superstep.Graph[work] {
	return oneNode("slow", func(ctx context.Context, s work) (work, error) {
		s, err := ran(s, "slow")
		if err == nil {
			err = await(ctx, s, "go")
		}
		return s, err
	})
}

// deadly ends its process until there is a file "behave".
func deadly() *superstep.Graph[work] {
	return oneNode("deadly", func(_ context.Context, s work) (work, error) {
		s, err := ran(s, "deadly")
		if err == nil && !exists(s, "behave") {
			os.Exit(9)
		}
		return s, err
	})
}

// reduces writes to a channel whose reducer kills its process, see lastOfNames.
func reduces() *superstep.Graph[work] { return reducing("reduces", false) }

// applies is reduces with a node beside the second and the third: what they return is stored by activities of their own before a workflow
// task applies it.
func applies() *superstep.Graph[work] { return reducing("applies", true) }

func reducing(graph string, beside bool) *superstep.Graph[work] {
	g := superstep.NewStateGraph[work](graph)
	before := []string{superstep.Start}
	for _, name := range []string{"first", "second", "third"} {
		nodes := []string{name}
		g.AddNode(name, func(_ context.Context, s work) (work, error) {
			s, err := ran(s, name)
			s.Best.Write(filepath.Join(s.Dir.Get(), name))
			return s, err
		})
		if beside && name != "first" {
			nodes = append(nodes, "beside "+name)
			g.AddNode(nodes[1], func(_ context.Context, s work) (work, error) { return ran(s, nodes[1]) })
		}
		for _, node := range nodes {
			if len(before) > 1 {
				g.AddJoin(before, node)
				continue
			}
			g.AddEdge(before[0], node)
		}
		before = nodes
	}
	return g.MustCompile()
}

// lastOfNames keeps the last of two paths by name. The file "kill" beside the path that it is given, which it removes,
// makes it kill its process: in the middle of a workflow task, where reducers run. Reducers must not do such things.
type lastOfNames struct{}

func (lastOfNames) Name() string { return "e2e.last-of-names/v1" }

func (lastOfNames) Reduce(current, update string) (string, error) {
	if os.Remove(filepath.Join(filepath.Dir(update), "kill-"+filepath.Base(update))) == nil {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return max(current, update), nil
}

// large writes a value of as many bytes as its input says.
func large() *superstep.Graph[work] {
	return oneNode("large", func(_ context.Context, s work) (work, error) {
		s.Note.Set(strings.Repeat("x", s.Size.Get()))
		return s, nil
	})
}

// piles has three nodes that each add a value of a wanted size to one list.
func piles() *superstep.Graph[work] {
	g := superstep.NewStateGraph[work]("piles")
	before := superstep.Start
	for _, name := range []string{"one", "two", "three"} {
		g.AddNode(name, func(_ context.Context, s work) (work, error) {
			s.Log.Append(strings.Repeat("x", s.Size.Get()))
			return s, nil
		})
		g.AddEdge(before, name)
		before = name
	}
	return g.MustCompile()
}

// hoards writes a value of a wanted size, which three nodes read after it. The second waits for the file "go".
func hoards() *superstep.Graph[work] {
	g := superstep.NewStateGraph[work]("hoards")
	g.AddNode("fill", func(_ context.Context, s work) (work, error) {
		s.Note.Set(hoard(s.Size.Get()))
		return s, nil
	})
	before := "fill"
	for _, name := range []string{"one", "two", "three"} {
		g.AddNode(name, func(ctx context.Context, s work) (work, error) {
			s, err := ran(s, name)
			if err == nil && name == "two" {
				err = await(ctx, s, "go")
			}
			if err == nil && s.Note.Get() != hoard(s.Size.Get()) {
				err = fmt.Errorf("%s reads another value, of %d bytes", name, len(s.Note.Get()))
			}
			return s, err
		})
		g.AddEdge(before, name)
		before = name
	}
	g.AddEdge(superstep.Start, "fill")
	return g.MustCompile()
}

// hoard is a text of that many bytes.
func hoard(size int) string { return strings.Repeat("0123456789", size/10+1)[:size] }

// asks asks two things at once, of different types.
func asks() *superstep.Graph[work] {
	g := superstep.NewStateGraph[work]("asks")
	g.AddNode("colour", question[string]("Which colour?"))
	g.AddNode("number", question[int64]("How many?"))
	g.AddEdge(superstep.Start, "colour")
	g.AddEdge(superstep.Start, "number")
	return g.MustCompile()
}

// tells has three nodes that each emit before they write; the second waits for the file "go" in between.
func tells() *superstep.Graph[work] {
	g := superstep.NewStateGraph[work]("tells")
	before := superstep.Start
	for _, name := range []string{"first", "second", "third"} {
		g.AddNode(name, func(ctx context.Context, s work) (work, error) {
			s, err := ran(s, name)
			if err == nil {
				err = superstep.Emit(ctx, name+" works")
			}
			if err == nil && name == "second" {
				err = await(ctx, s, "go")
			}
			return s, err
		})
		g.AddEdge(before, name)
		before = name
	}
	return g.MustCompile()
}

func question[A any](text string) func(context.Context, work) (work, error) {
	return func(ctx context.Context, s work) (work, error) {
		answer, err := superstep.Interrupt[A](ctx, text)
		if err != nil {
			return s, err
		}
		s.Log.Append(fmt.Sprint(answer))
		return s, nil
	}
}

func oneNode(name string, node func(context.Context, work) (work, error)) *superstep.Graph[work] {
	g := superstep.NewStateGraph[work](name)
	g.AddNode(name, node)
	g.AddEdge(superstep.Start, name)
	return g.MustCompile()
}

// ran notes outside, and in the state, that a node ran.
func ran(s work, node string) (work, error) {
	s.Log.Append(node)
	return s, noted(s.Dir.Get(), node)
}

// noted adds a line to the file "ran" of a directory.
func noted(dir, line string) error {
	f, err := os.OpenFile(filepath.Join(dir, "ran"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// await waits for a file.
func await(ctx context.Context, s work, file string) error {
	return awaitUntil(ctx, func() bool { return exists(s, file) })
}

// awaitUntil waits for a condition.
func awaitUntil(ctx context.Context, holds func() bool) error {
	for !holds() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(poll):
		}
	}
	return nil
}

func exists(s work, file string) bool {
	_, err := os.Stat(filepath.Join(s.Dir.Get(), file))
	return err == nil
}
