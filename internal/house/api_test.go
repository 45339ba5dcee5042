package house

import (
	"fmt"
	"go/types"
	"os"
	"slices"
	"strings"
	"testing"
)

const apiFile = "testdata/api.txt"

// TestTheAPIIsWritten holds what users can call to testdata/api.txt, one line for each exported name.
func TestTheAPIIsWritten(t *testing.T) {
	var now []string
	for _, p := range packages(t) {
		if p.public() {
			now = append(now, p.api()...)
		}
	}
	slices.Sort(now)
	if *update || *accept {
		if err := os.WriteFile(apiFile, []byte(strings.Join(now, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(apiFile)
	if err != nil {
		t.Fatal(err)
	}
	was := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	var changes []string
	for _, line := range was {
		if _, there := slices.BinarySearch(now, line); !there {
			changes = append(changes, line+"\x00-")
		}
	}
	for _, line := range now {
		if _, there := slices.BinarySearch(was, line); !there {
			changes = append(changes, line+"\x00+")
		}
	}
	if len(changes) == 0 {
		return
	}
	slices.Sort(changes) // what a name was stands beside what it is
	var diff strings.Builder
	for _, c := range changes {
		line, sign, _ := strings.Cut(c, "\x00")
		fmt.Fprintln(&diff, sign, line)
	}
	t.Errorf("the API has changed; if that is meant: go test ./internal/house -update\n%s", diff.String())
}

// machinery are folders of packages that can be imported, but that users have no use for: what of them the API names is
// listed under the name that it has there.
var machinery = []string{"activities", "examples", "graphadapter", "internal", "test", "workflows"}

// public reports whether users import a package.
func (p *checked) public() bool {
	top, _, _ := strings.Cut(p.name, "/")
	return p.types.Name() != "main" && !slices.Contains(machinery, top) && !strings.Contains(p.name, "internal/")
}

// api is one line for each exported name: constants with their values, types with their exported fields and methods.
func (p *checked) api() (lines []string) {
	say := func(format string, args ...any) {
		line := p.types.Name() + ": " + fmt.Sprintf(format, args...)
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	for _, name := range p.types.Scope().Names() {
		o := p.types.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		switch o := o.(type) {
		case *types.Const:
			say("const %s %s = %s", name, p.write(o.Type()), o.Val().ExactString())
		case *types.TypeName:
			p.apiOfType(say, o)
		default:
			say("%s", types.ObjectString(o, p.qualify))
		}
	}
	return lines
}

// qualify names packages by their paths, those of this module from its root, and the package itself not at all.
func (p *checked) qualify(other *types.Package) string {
	if other == p.types {
		return ""
	}
	return strings.TrimPrefix(other.Path(), mainModule+"/")
}

func (p *checked) write(t types.Type) string { return types.TypeString(t, p.qualify) }

func (p *checked) apiOfType(say func(format string, args ...any), o *types.TypeName) {
	named, ok := types.Unalias(o.Type()).(*types.Named)
	if o.IsAlias() {
		say("type %s = %s", o.Name(), p.write(types.Unalias(o.Type())))
		if !ok || !p.hidden(named.Obj().Pkg()) {
			return
		}
	} else {
		say("type %s%s %s", o.Name(), p.parameters(named), p.kind(named.Underlying()))
	}
	if fields, ok := named.Underlying().(*types.Struct); ok {
		for i := range fields.NumFields() {
			if f := fields.Field(i); f.Exported() {
				say("field %s.%s %s %s", o.Name(), f.Name(), p.write(f.Type()), fields.Tag(i))
			}
		}
	}
	for i := range named.NumMethods() {
		if m := named.Method(i); m.Exported() {
			say("method %s.%s%s", o.Name(), m.Name(), strings.TrimPrefix(p.write(m.Signature()), "func"))
		}
	}
}

// hidden reports whether a package's own lines are not part of the API.
func (p *checked) hidden(pkg *types.Package) bool {
	name, ours := strings.CutPrefix(pkg.Path(), mainModule+"/")
	top, _, _ := strings.Cut(name, "/")
	return ours && slices.Contains(machinery, top)
}

// kind is a type's own, without the fields that have lines of their own, and the methods that nobody else can have.
func (p *checked) kind(t types.Type) string {
	switch t := t.(type) {
	case *types.Struct:
		return "struct"
	case *types.Interface:
		if !t.IsMethodSet() {
			return p.write(t)
		}
		var methods []string
		for i := range t.NumMethods() {
			if m := t.Method(i); m.Exported() {
				methods = append(methods, m.Name()+strings.TrimPrefix(p.write(m.Signature()), "func"))
			} else if last := len(methods) - 1; last < 0 || methods[last] != "others" {
				methods = append(methods, "others")
			}
		}
		return "interface { " + strings.Join(methods, "; ") + " }"
	}
	return p.write(t)
}

func (p *checked) parameters(named *types.Named) string {
	var out []string
	for i := range named.TypeParams().Len() {
		tp := named.TypeParams().At(i)
		out = append(out, tp.Obj().Name()+" "+p.write(tp.Constraint()))
	}
	if len(out) == 0 {
		return ""
	}
	return "[" + strings.Join(out, ", ") + "]"
}
