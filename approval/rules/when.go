package rules

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"
	"cel.dev/cel-go/interpreter"
	"go.yaml.in/yaml/v3"

	"superstep.dev/approval"
)

const (
	maxExpression = 4_000   // bytes
	maxCost       = 100_000 // CEL's own measure: about one for each step, a microsecond or two
)

// What an expression sees. Its fields are checked when it is compiled.
type (
	what struct {
		Tool        string            `cel:"tool"`
		ToolVersion string            `cel:"tool_version"`
		Summary     string            `cel:"summary"`
		PlanVersion int               `cel:"plan_version"`
		Permissions []string          `cel:"permissions"`
		Risk        string            `cel:"risk"`
		Undo        string            `cel:"undo"`
		Quorum      int               `cel:"quorum"`
		Watch       map[string]string `cel:"watch"`
		ProposedBy  string            `cel:"proposed_by"`
		Proposers   []string          `cel:"proposers"`
	}
	who struct {
		Name        string             `cel:"name"`
		Groups      []string           `cel:"groups"`
		Permissions []string           `cel:"permissions"`
		Limits      map[string]float64 `cel:"limits"`
	}
	said struct {
		By    string    `cel:"by"`
		KeyID string    `cel:"key_id"`
		At    time.Time `cel:"at"`
	}
)

var environment = sync.OnceValues(func() (*cel.Env, error) {
	person := cel.ObjectType("rules.who")
	return newEnvironment([]string{"phase", "verdict", "thread", "graph", "node"},
		ext.NativeTypes(ext.ParseStructTags(true), reflect.TypeFor[what](), reflect.TypeFor[who](), reflect.TypeFor[said]()),
		cel.CrossTypeNumericComparisons(true),
		cel.Variable("params", cel.DynType), cel.Variable("action", cel.ObjectType("rules.what")),
		cel.Variable("approver", person), cel.Variable("requester", person),
		cel.Variable("now", cel.TimestampType), cel.Variable("votes", cel.ListType(cel.ObjectType("rules.said"))))
})

// newEnvironment is one in which the named variables are texts.
func newEnvironment(texts []string, options ...cel.EnvOption) (*cel.Env, error) {
	options = append(options, cel.ParserExpressionSizeLimit(maxExpression), cel.ParserRecursionLimit(100))
	for _, name := range texts {
		options = append(options, cel.Variable(name, cel.StringType))
	}
	return cel.NewEnv(options...)
}

// condition is a compiled expression.
type condition struct{ program cel.Program }

func (r reader) condition(environment func() (*cel.Env, error), n *yaml.Node) (*condition, error) {
	var text string
	if err := r.text(n, maxExpression, &text); err != nil {
		return nil, err
	}
	env, err := environment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, r.expressionError(n, issues)
	}
	if kind := ast.OutputType(); !kind.IsExactType(cel.BoolType) && !kind.IsExactType(cel.DynType) {
		return nil, r.fail(n, "when: the expression says %s, not true or false", kind)
	}
	program, err := env.Program(ast, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(100))
	if err != nil {
		return nil, r.fail(n, "when: %s", err)
	}
	return &condition{program: program}, nil
}

// expressionError puts the first mistake where it stands in the file: an expression of several lines begins below its
// "|" or ">", the others where the value does.
func (r reader) expressionError(n *yaml.Node, issues *cel.Issues) error {
	at := *n
	first := issues.Errors()[0]
	line, column := max(first.Location.Line(), 1), max(first.Location.Column(), 0)+1
	switch n.Style {
	case yaml.LiteralStyle:
		at.Line += line
	case yaml.FoldedStyle: // its lines are joined
		at.Line++
	default:
		at.Line += line - 1
	}
	return r.fail(&at, "when: at character %d: %s", column, strings.ReplaceAll(first.Message, "\n", " "))
}

// holds evaluates the expression; unclear says why it does not decide, "" when it does. The error is that of a context that
// is over.
func (c *condition) holds(ctx context.Context, see map[string]any) (yes bool, unclear string, err error) {
	value, _, err := c.program.ContextEval(ctx, see)
	if ctx.Err() != nil {
		return false, "", ctx.Err()
	}
	if stopped, ok := errors.AsType[interpreter.EvalCancelledError](err); ok && stopped.Cause == interpreter.CostLimitExceeded {
		return false, "costs too much with these parameters", nil
	}
	if err != nil {
		// What CEL says may quote parameters, which may be secret.
		return false, "has no value for these parameters: one is missing or of another kind", nil
	}
	yes, ok := value.Value().(bool)
	if !ok {
		return false, "is neither true nor false for these parameters", nil
	}
	return yes, "", nil
}

// seen returns the variables of an expression.
func seen(r approval.PolicyRequest, params any) map[string]any {
	votes := make([]said, len(r.Votes))
	for i, v := range r.Votes {
		votes[i] = said{By: v.By, KeyID: v.KeyID, At: v.At}
	}
	a := what{
		Tool: r.Action.Tool, ToolVersion: r.Action.ToolVersion, Summary: r.Action.Summary, PlanVersion: r.Action.PlanVersion,
		Permissions: r.Action.Permissions, Risk: string(risk(r.Action)), Undo: r.Action.Undo, Quorum: r.Action.Needs(0), Watch: r.Action.Watch,
		Proposers: r.Action.Proposers(),
	}
	if r.Action.Before != nil {
		a.ProposedBy = r.Action.Before.By
	}
	return map[string]any{
		"params": numbers(params), "action": a, "approver": sight(r.Approver), "requester": sight(r.Requester), "votes": votes, "now": r.Now,
		"phase": string(r.Phase), "verdict": string(r.Verdict), "thread": r.Thread, "graph": r.Graph, "node": r.Node,
	}
}

func sight(p approval.Person) who {
	return who{Name: p.Name, Groups: p.Groups, Permissions: p.Permissions, Limits: p.Limits}
}

// numbers returns a copy of decoded JSON with whole numbers as int64 and others as float64.
func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, inner := range v {
			out[name] = numbers(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = numbers(inner)
		}
		return out
	case json.Number:
		if whole, err := v.Int64(); err == nil {
			return whole
		}
		double, _ := v.Float64() // beyond a double's range it is the largest or infinite, so more than any other
		return double
	}
	return v
}

func decode(params json.RawMessage) (any, error) {
	if len(params) == 0 {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(params))
	dec.UseNumber()
	var out any
	err := dec.Decode(&out)
	return out, err
}
