package wire_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/examples/desk"
	"superstep.dev/job"
	"superstep.dev/workflows/protocol"
)

const (
	page    = "../../docs/wire.md"
	example = "../../examples/wire"
)

// name is a name of the wire: of a message, a workflow, a field, an error.
type name struct{ constant, value string }

// is reports whether the constant's name begins in one of these ways.
func (n name) is(beginnings ...string) bool {
	for _, b := range beginnings {
		if strings.HasPrefix(n.constant, b) {
			return true
		}
	}
	return false
}

// names are all that package protocol declares, from its source: one that is new is found without anybody listing it.
func names(t *testing.T) (all []name) {
	t.Helper()
	files, err := filepath.Glob("../../workflows/protocol/*.go")
	require.NoError(t, err)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != len(spec.Names) {
				return true
			}
			for i, value := range spec.Values {
				if text, ok := value.(*ast.BasicLit); ok && text.Kind == token.STRING && spec.Names[i].IsExported() {
					unquoted, err := strconv.Unquote(text.Value)
					require.NoError(t, err)
					all = append(all, name{spec.Names[i].Name, unquoted})
				}
			}
			return true
		})
	}
	require.Greater(t, len(all), 70)
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// TestThePageNamesAll that goes over the wire, and every bound by its number.
func TestThePageNamesAll(t *testing.T) {
	text := read(t, page)
	for _, n := range names(t) {
		assert.Contains(t, text, "`"+n.value+"`", n.constant)
	}
}

// TestThePageIsReadByTheTypes: each example of the page is one of the type that stands beside it, with no field that the type
// does not have.
func TestThePageIsReadByTheTypes(t *testing.T) {
	types := map[string]func() any{
		"GraphInput": func() any { return &protocol.GraphInput{} }, "GraphResult": func() any { return &protocol.GraphResult{} },
		"ResumeUpdate": func() any { return &protocol.ResumeUpdate{} }, "ResumeReply": func() any { return &protocol.ResumeReply{} },
		"InvokeRequest": func() any { return &protocol.InvokeRequest{} }, "UpdateStateRequest": func() any { return &protocol.UpdateStateRequest{} },
		"UpdateStateReply": func() any { return &protocol.UpdateStateReply{} }, "RetryRequest": func() any { return &protocol.RetryRequest{} },
		"DrainRequest": func() any { return &protocol.DrainRequest{} }, "RestReply": func() any { return &protocol.RestReply{} },
		"PauseRequest": func() any { return &protocol.PauseRequest{} },
		"PauseReply":   func() any { return &protocol.PauseReply{} }, "CancelRequest": func() any { return &protocol.CancelRequest{} },
		"CancelReply": func() any { return &protocol.CancelReply{} }, "EventRequest": func() any { return &protocol.EventRequest{} },
		"EventReply": func() any { return &protocol.EventReply{} }, "ViewRequest": func() any { return &protocol.ViewRequest{} },
		"State": func() any { return &protocol.State{} }, "Line": func() any { return &protocol.Line{} },
		"RestRequest": func() any { return &protocol.RestRequest{} }, "QuestionReply": func() any { return &protocol.QuestionReply{} }, "Closing": func() any { return &protocol.Closing{} },
		"AuditReply": func() any { return &protocol.AuditReply{} }, "AdmitRequest": func() any { return &protocol.AdmitRequest{} },
		"AdmitReply": func() any { return &protocol.AdmitReply{} }, "QuestionsNote": func() any { return &protocol.QuestionsNote{} },
		"AnswerRefusal": func() any { return &protocol.AnswerRefusal{} }, "LeaderInput": func() any { return &protocol.LeaderInput{} },
		"RetrySubJob": func() any { return &protocol.RetrySubJob{} }, "ChangeExperts": func() any { return &protocol.ChangeExperts{} },
		"RaiseBudget": func() any { return &protocol.RaiseBudget{} }, "job.Halt": func() any { return &job.Halt{} },
		"job.Decision": func() any { return &job.Decision{} }, "job.View": func() any { return &job.View{} },
	}
	shown := map[string]bool{}
	for _, block := range regexp.MustCompile("(?s)```json ([\\w.]+)\n(.*?)```").FindAllStringSubmatch(read(t, page), -1) {
		made := types[block[1]]
		if !assert.NotNil(t, made, "the page has a type %q that this test does not know", block[1]) {
			continue
		}
		shown[block[1]] = true
		value := made()
		decoder := json.NewDecoder(strings.NewReader(block[2]))
		decoder.DisallowUnknownFields()
		assert.NoError(t, decoder.Decode(value), block[2])
		if in, ok := value.(*protocol.GraphInput); ok {
			assert.Empty(t, in.Problem(), block[2])
		}
	}
	for kind := range types {
		assert.True(t, shown[kind], "the page shows no %s", kind)
	}
}

// TestTheExampleSendsAll: the program of examples/wire, which knows Temporal's client only, sends every message to a real run, has
// a reply to each, and meets every field and error that the page names.
func TestTheExampleSendsAll(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	office, err := desk.Office("office")
	require.NoError(t, err)
	r.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{desk.Graph("desk")}, Leaders: []superstep.Leader{office}})
	program := filepath.Join(t.TempDir(), "wire")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = example
	built, err := build.CombinedOutput()
	require.NoError(t, err, "%s", built)
	run := exec.CommandContext(t.Context(), program, "-address", r.address, "-task-queue", r.queue)
	var said, problem bytes.Buffer
	run.Stdout, run.Stderr = &said, &problem
	err = run.Run()
	output := said.String()
	t.Log(output)
	require.NoError(t, err, "%s", problem.String())

	for _, n := range names(t) {
		switch {
		case n.value == protocol.NoticesWorkflow, n.value == protocol.ErasureWorkflow: // runs alone start the one, erasures the other
		case n.is("Update"):
			assert.Regexp(t, `(?m)^update `+regexp.QuoteMeta(n.value)+`\n  sent   .*\n  got    [{nl]`, output, n.constant)
		case n.is("Signal"):
			assert.Regexp(t, `(?m)^signal `+regexp.QuoteMeta(n.value)+`\n  sent   `, output, n.constant)
		case n.is("Query"):
			assert.Regexp(t, `(?m)^query `+regexp.QuoteMeta(n.value)+`\n  sent   .*\n  got    [{\[]`, output, n.constant)
		case strings.HasSuffix(n.constant, "Workflow"):
			assert.Contains(t, output, "workflow "+n.value+" ", n.constant)
		case n.is("ErrType"):
			assert.Contains(t, output, "error "+n.value+" ", n.constant)
		}
	}
	for _, field := range []string{protocol.MemoQuestions, protocol.AttributeGraph, protocol.AttributeStatus,
		protocol.AttributeNodes, protocol.AttributeQuestions} {
		assert.Contains(t, output, `"`+field+`"`)
	}
}

// TestTheExampleKnowsTemporalOnly: a program that needs anything of this module would be no proof of the wire.
func TestTheExampleKnowsTemporalOnly(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(example, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range parsed.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			require.NoError(t, err)
			assert.True(t, !strings.Contains(strings.Split(path, "/")[0], ".") || strings.HasPrefix(path, "go.temporal.io/"), "%s imports %s", file, path)
		}
	}
}
