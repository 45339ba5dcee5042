package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTheGlossaryNamesWhatExists: every Go name in the glossary is declared by a package of that name.
func TestTheGlossaryNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile("glossary.md")
	require.NoError(t, err)
	names := declaredNames(t, "..")
	found := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[1]) == "Word" {
			continue
		}
		quoted := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[3], -1)
		require.NotEmpty(t, quoted, "no Go name carries %q", strings.TrimSpace(cells[1]))
		for _, q := range quoted {
			found++
			assert.True(t, names[q[1]], "there is no %s", q[1])
		}
	}
	require.Greater(t, found, 80)
	require.False(t, names["pregel.Nothing"])
}

// TestTheArchitectureNamesWhatExists: every Go name in architecture.md, exported or not, is declared by a package of that name.
func TestTheArchitectureNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile("architecture.md")
	require.NoError(t, err)
	names := declaredNames(t, "..")
	found := 0
	for _, quoted := range regexp.MustCompile("`([a-z]+\\.[A-Za-z][A-Za-z.]+)`").FindAllStringSubmatch(string(text), -1) {
		if workflowType.MatchString(quoted[1]) {
			continue
		}
		found++
		assert.True(t, names[quoted[1]], "there is no %s", quoted[1])
	}
	require.Greater(t, found, 40)
}

// workflowType is the name of a workflow or an activity, not of Go.
var workflowType = regexp.MustCompile(`^superstep\.[a-z]`)

// TestContributingNamesWhatExists: who is told where a change goes finds the file there.
func TestContributingNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile("../CONTRIBUTING.md")
	require.NoError(t, err)
	found := regexp.MustCompile("`([a-z_/]+\\.(?:go|yaml)|[a-z]+/[a-z_/]+)`").FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(found), 10)
	for _, quoted := range found {
		_, err := os.Stat(filepath.Join("..", quoted[1]))
		assert.NoError(t, err)
	}
}

// TestTheArchitectureIsShort: who reads it has time for so much.
func TestTheArchitectureIsShort(t *testing.T) {
	text, err := os.ReadFile("architecture.md")
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(text), "\n"), 200, "what users are promised belongs in the other pages")
}

// TestTheGlossaryHasEachWordOnce: a word that stands twice would mean two things.
func TestTheGlossaryHasEachWordOnce(t *testing.T) {
	text, err := os.ReadFile("glossary.md")
	require.NoError(t, err)
	seen := map[string]bool{"Word": true}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "---") {
			continue
		}
		for word := range strings.SplitSeq(cells[1], ",") {
			word = strings.TrimSpace(word)
			require.True(t, word == "Word" || !seen[word], "%q stands twice", word)
			seen[word] = true
		}
	}
}

// declaredNames returns the names that the module's packages declare, with the name of the package: types, functions, variables
// and constants, and behind a type its fields and methods.
func declaredNames(t *testing.T, root string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := entry.Name(); base == "testdata" || base == "devserver" || strings.HasPrefix(base, ".") && base != ".." {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range parsed.Decls {
			for _, name := range declared(decl) {
				names[parsed.Name.Name+"."+name] = true
			}
		}
		return nil
	})
	require.NoError(t, err)
	return names
}

// declared returns the names that a declaration declares.
func declared(decl ast.Decl) []string {
	if f, ok := decl.(*ast.FuncDecl); ok {
		if f.Recv == nil {
			return []string{f.Name.Name}
		}
		return []string{receiver(f.Recv.List[0].Type) + "." + f.Name.Name}
	}
	var out []string
	for _, spec := range decl.(*ast.GenDecl).Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				out = append(out, name.Name)
			}
		case *ast.TypeSpec:
			out = append(out, spec.Name.Name)
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					for _, name := range field.Names {
						out = append(out, spec.Name.Name+"."+name.Name)
					}
				}
			}
		}
	}
	return out
}

// receiver returns the name of a method's type.
func receiver(typ ast.Expr) string {
	switch typ := typ.(type) {
	case *ast.StarExpr:
		return receiver(typ.X)
	case *ast.IndexExpr:
		return receiver(typ.X)
	case *ast.IndexListExpr:
		return receiver(typ.X)
	case *ast.Ident:
		return typ.Name
	}
	return ""
}
