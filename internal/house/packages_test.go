package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// checked is a package of the main module, its tests left out, with the types of everything in it.
type checked struct {
	// name is the import path below the module's: "" for the root's, "workflows/protocol".
	name  string
	dir   string
	files []*ast.File
	types *types.Package
	info  *types.Info
	set   *token.FileSet
}

// fileOf is the name of the file that a position is in.
func (p *checked) fileOf(at token.Pos) string { return filepath.Base(p.set.Position(at).Filename) }

// listed is what the go command says of a package.
type listed struct {
	ImportPath, Dir, Name, Export string
	GoFiles                       []string
	Module                        *struct{ Path string }
}

// load checks the main module's packages, once for all tests. Packages that they import come compiled, from the build
// cache: the tests of the whole module compile them anyway.
var load = sync.OnceValues(func() ([]*checked, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Name,Export,GoFiles,Module", "./...")
	cmd.Dir = root
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, errs.String())
	}
	var ours []listed
	exports := map[string]string{}
	for from := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := from.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if p.Module != nil && p.Module.Path == mainModule {
			ours = append(ours, p)
		}
	}
	set := token.NewFileSet()
	imports := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var all []*checked
	for _, p := range ours {
		c, err := check(set, imports, p)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
})

func check(set *token.FileSet, imports types.Importer, p listed) (*checked, error) {
	c := &checked{name: strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, mainModule), "/"), dir: p.Dir, set: set,
		info: &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}}
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		c.files = append(c.files, file)
	}
	var err error
	c.types, err = (&types.Config{Importer: imports}).Check(p.ImportPath, set, c.files, c.info)
	return c, err
}

// packages returns the main module's packages.
func packages(t *testing.T) []*checked {
	t.Helper()
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return all
}
