package house

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostUp is how many of a hundred arrows between the files of a package may go up.
const mostUp = 10

// fewestFiles is from how many files on a package is measured: a smaller one is read at one sitting.
const fewestFiles = 10

// orderHead is the line of a doc.go behind which the package's files are named, one a line without ".go", those first that
// know nothing of what follows:
//
//	// # The files, in order of reading
//	//
//	//	value            a JSON value
//	//	suspend, restore a stored loop
const orderHead = "# The files, in order of reading"

// TestFilesFollowTheirOrder: a file may use what files before it declare, and hardly what files behind it do.
//
// An arrow leads from one file of a package to another of which it uses a name: a function, type, variable, constant,
// method or field. It goes up when the other file comes later. The order is that of the package's doc.go; in a package
// that names none it is the best one that could be found, so that what goes up there goes up in any order.
func TestFilesFollowTheirOrder(t *testing.T) {
	numbers := map[string]int{}
	for _, p := range packages(t) {
		if len(p.files) < fewestFiles {
			continue
		}
		g := p.uses()
		order, problems := p.order(g)
		for _, problem := range problems {
			t.Errorf("%s/doc.go: %s", cmp.Or(p.name, "."), problem)
		}
		up, all := g.up(order), g.count()
		if all == 0 {
			continue
		}
		numbers[cmp.Or(p.name, ".")] = up * 100 / all // per cent, rounded down
		t.Logf("%s: %d of %d arrows go up: %s", cmp.Or(p.name, "."), up, all, g.upward(order))
	}
	measure(t, "up", mostUp, numbers, "move what is used to an earlier file (-v shows the arrows)")
}

// uses are the arrows between files: from a file to those whose names it uses.
type uses map[string]map[string]bool

func (p *checked) uses() uses {
	g := uses{}
	for _, file := range p.files {
		from := p.fileOf(file.Pos())
		g[from] = map[string]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			if used := p.info.Uses[id]; used != nil && used.Pkg() == p.types && outlives(used) {
				if to := p.fileOf(used.Pos()); to != from {
					g[from][to] = true
				}
			}
			return true
		})
	}
	return g
}

// outlives reports whether an object is more than a function's own: declared by the package, or a member of a type.
func outlives(o types.Object) bool {
	if o.Parent() == o.Pkg().Scope() {
		return true
	}
	switch o := o.(type) {
	case *types.Var:
		return o.IsField()
	case *types.Func:
		return o.Signature().Recv() != nil
	}
	return false
}

func (g uses) count() (n int) {
	for _, to := range g {
		n += len(to)
	}
	return n
}

// up counts the arrows to files that come later.
func (g uses) up(order []string) int { return len(g.upward(order)) }

func (g uses) upward(order []string) (lines []string) {
	at := map[string]int{}
	for i, name := range order {
		at[name] = i
	}
	for from, to := range g {
		for name := range to {
			if at[name] > at[from] {
				lines = append(lines, strings.TrimSuffix(from, ".go")+" -> "+strings.TrimSuffix(name, ".go"))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// order is the one that the package's doc.go names, or the best that was found. A doc.go that names files names them all.
func (p *checked) order(g uses) (order, problems []string) {
	text, err := os.ReadFile(filepath.Join(p.dir, "doc.go"))
	if err != nil && !os.IsNotExist(err) {
		return nil, []string{err.Error()}
	}
	named := namedFiles(string(text))
	if len(named) == 0 {
		return g.best(), nil
	}
	order = []string{"doc.go"}
	for _, name := range named {
		if _, there := g[name+".go"]; !there {
			problems = append(problems, fmt.Sprintf("it names a file %s.go, which is not there", name))
		}
		order = append(order, name+".go")
	}
	for _, name := range slices.Sorted(maps.Keys(g)) {
		if !slices.Contains(order, name) {
			problems = append(problems, "its order of reading lacks "+name)
			order = append(order, name)
		}
	}
	return order, problems
}

// namedFiles are the files that a doc.go names, in its order.
func namedFiles(text string) (names []string) {
	_, section, found := strings.Cut(text, orderHead)
	if !found {
		return nil
	}
	for line := range strings.Lines(section) {
		line, indented := strings.CutPrefix(line, "//\t")
		switch {
		case indented:
			for word := range strings.FieldsSeq(line) {
				name, more := strings.CutSuffix(word, ",")
				names = append(names, name)
				if !more {
					break
				}
			}
		case strings.TrimSpace(line) != "" && strings.TrimSpace(line) != "//":
			return names // the section is over
		}
	}
	return names
}

// best looks for the order with the fewest arrows that go up: it takes each file in turn to where fewest do, until none
// can be taken to a better place. It need not be the very best, but is always the same.
func (g uses) best() []string {
	order := slices.Sorted(maps.Keys(g))
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(len(g[a]), len(g[b])) })
	for better := true; better; {
		better = false
		for _, name := range slices.Clone(order) {
			better = g.place(order, name) || better
		}
	}
	return order
}

// place takes a file to the place where fewest arrows from and to it go up, and reports whether that is a better one.
func (g uses) place(order []string, name string) bool {
	from := slices.Index(order, name)
	rest := slices.Delete(slices.Clone(order), from, from+1)
	// Before all others every arrow from the file goes up, and none to it.
	cost := 0
	for _, other := range rest {
		if g[name][other] {
			cost++
		}
	}
	best, lowest, here := 0, cost, cost
	for i, other := range rest {
		if g[name][other] {
			cost--
		}
		if g[other][name] {
			cost++
		}
		if i+1 == from {
			here = cost
		}
		if cost < lowest {
			best, lowest = i+1, cost
		}
	}
	if lowest == here {
		return false
	}
	copy(order, slices.Insert(rest, best, name))
	return true
}

// TestTheBestOrderIsFound where there is one without an arrow that goes up, and where there cannot be.
func TestTheBestOrderIsFound(t *testing.T) {
	chain := uses{"a": {"b": true}, "b": {"c": true}, "c": {"d": true}, "d": {}}
	if got := chain.best(); !slices.Equal(got, []string{"d", "c", "b", "a"}) || chain.up(got) != 0 {
		t.Errorf("%v, %d arrows go up", got, chain.up(got))
	}
	circle := uses{"a": {"b": true}, "b": {"c": true}, "c": {"a": true}}
	if got := circle.up(circle.best()); got != 1 {
		t.Errorf("%d arrows of a circle go up", got)
	}
}

// TestNamedFiles are read as they are written.
func TestNamedFiles(t *testing.T) {
	text := "// Package p.\n//\n// " + orderHead + "\n//\n//\tvalue   a value, and more\n//\tsuspend, restore   a stored loop\n//\n// # Else\n//\n//\tno file\npackage p\n"
	if got := namedFiles(text); !slices.Equal(got, []string{"value", "suspend", "restore"}) {
		t.Error(got)
	}
}
