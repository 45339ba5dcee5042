package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLongTestsAreRun holds the Makefile's list of packages that make verify runs without -short to those that skip
// something with it: what a package skips that is not in the list would be run by nobody.
func TestLongTestsAreRun(t *testing.T) {
	makefile := fileText(t, "Makefile")
	list := regexp.MustCompile(`(?m)^LONG := ((?:.*\\\n)*.*)$`).FindStringSubmatch(makefile)
	if list == nil {
		t.Fatal("the Makefile has no LONG")
	}
	listed := strings.Fields(strings.ReplaceAll(list[1], "\\", " "))
	shortened := map[string]bool{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		short, err := asksForShort(file)
		if short {
			within, _ := filepath.Rel(root, filepath.Dir(file))
			shortened["./"+filepath.ToSlash(within)] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range listed {
		if !shortened[pkg] {
			t.Errorf("the Makefile's LONG lists %s, which skips nothing with -short", pkg)
		}
	}
	for pkg := range shortened {
		if !slices.Contains(listed, pkg) {
			t.Errorf("%s skips something with -short: list it in the Makefile's LONG", pkg)
		}
	}
}

// asksForShort reports whether a file calls testing.Short, or what calls it for tests.
func asksForShort(file string) (found bool, err error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return false, err
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			x, _ := s.X.(*ast.Ident)
			found = found || x != nil && (x.Name == "testing" && s.Sel.Name == "Short" || x.Name == "programtest" && s.Sel.Name == "Launch")
		}
		return !found
	})
	return found, nil
}
