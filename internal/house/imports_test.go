package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The repository's two modules.
const (
	mainModule = "superstep.dev"
	root       = "../.."
)

// source is what the packages of one module import. Files are read whatever their build constraints say, so that an
// arrow that only Windows code has counts too.
type source map[string][]string

// read returns the imports of every package below dir, test files left out. A directory with a go.mod of its own is
// another module's.
func read(t *testing.T, dir, module string) source {
	t.Helper()
	found := source{}
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return enter(dir, file, entry)
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		within, err := filepath.Rel(dir, filepath.Dir(file))
		if err != nil {
			return err
		}
		imported, err := importsOf(file)
		pkg := path.Join(module, filepath.ToSlash(within))
		found[pkg] = append(found[pkg], imported...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range found {
		slices.Sort(found[pkg])
		found[pkg] = slices.Compact(found[pkg])
	}
	return found
}

// enter decides whether a directory's files are the module's: the rules are those of the go command.
func enter(dir, file string, entry fs.DirEntry) error {
	if file == dir {
		return nil
	}
	name := entry.Name()
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(file, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func importsOf(file string) ([]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, spec := range parsed.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		out = append(out, name)
	}
	return out, nil
}

// usesOf returns what the files of a directory, tests left out, use of a package.
func usesOf(t *testing.T, dir, pkg string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok {
				if name, ok := selector.X.(*ast.Ident); ok && name.Name == pkg {
					out = append(out, selector.Sel.Name)
				}
			}
			return true
		})
	}
	return out
}

// standard reports whether a package is the standard library's: no other import path begins without a dot in its
// first element.
func standard(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return !strings.Contains(first, ".")
}

// within reports whether a package is named by one of the patterns: its path, or a path with "/..." behind it for
// everything at and below it.
func within(pkg string, patterns []string) bool {
	for _, p := range patterns {
		if base, below := strings.CutSuffix(p, "/..."); pkg == base || below && strings.HasPrefix(pkg, base+"/") {
			return true
		}
	}
	return false
}
