package house

import (
	"cmp"
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The limits: what a reader who is new can keep in mind.
const (
	mostFiles   = 40 // production files of a package
	mostMethods = 60 // methods of a type
	mostEntries = 71 // files and folders of the root: serve/ is a handler that users mount, so it is no room of another
)

// machines are types whose methods are many for a reason: each is a pure machine whose state is one thing, so its methods
// cannot be parted without showing that state to other packages.
var machines = map[string]int{
	"graphadapter/pregel.Loop":    100, // one run: tasks, answers, claims and subgraphs decide on the same superstep
	"graphadapter/pregel.Program": 100, // one compiled graph, read by all that plans, applies and inspects
	"graphadapter/life.Run":       100, // one life: every command, answer and deadline looks at the same questions, pauses and audit
	"job.Board":                   100, // one job: every call settles the same subjobs, budgets and experts
}

// TestPackagesHaveFewFiles counts files whatever their build constraints say, tests left out.
func TestPackagesHaveFewFiles(t *testing.T) {
	numbers := map[string]int{}
	for _, p := range packages(t) {
		files, err := filepath.Glob(filepath.Join(p.dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				n++
			}
		}
		numbers[cmp.Or(p.name, ".")] = n
	}
	measure(t, "files", mostFiles, numbers, "part the package, or merge files of one subject")
}

// TestTypesHaveFewMethods counts those that are written, not those of embedded types.
func TestTypesHaveFewMethods(t *testing.T) {
	numbers := map[string]int{}
	for _, p := range packages(t) {
		for _, file := range p.files {
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
					numbers[cmp.Or(p.name, "superstep")+"."+receiver(f.Recv.List[0].Type)]++
				}
			}
		}
	}
	for name, most := range machines {
		if n := numbers[name]; n > most {
			t.Errorf("%s has %d methods, at most %d: part it", name, n, most)
		} else if n <= mostMethods {
			t.Errorf("%s has only %d methods: it needs no exception", name, n)
		}
		delete(numbers, name)
	}
	measure(t, "methods", mostMethods, numbers, "give what belongs together a type of its own")
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// TestTheRootIsShort counts the files and folders of the root, those that begin with a dot included, and not what git ignores.
func TestTheRootIsShort(t *testing.T) {
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Skip("only in a clone: git says what belongs to the root")
	}
	entries := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		first, _, _ := strings.Cut(strings.TrimSpace(line), "/")
		if _, err := os.Stat(filepath.Join(root, first)); err == nil {
			entries[first] = true
		}
	}
	measure(t, "entries", mostEntries, map[string]int{"root": len(entries)}, "give it a folder")
}
