package rules

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"
	"go.yaml.in/yaml/v3"

	"superstep.dev/approval"
)

// controlRule is a rule for what is done to runs, as written.
type controlRule struct {
	name   string
	allow  bool
	reader reader
	node   *yaml.Node

	ops, graphs []string
	when        *condition

	by, permissions []string
	reason          string
}

// What a control rule's expression sees.
var controlEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	options := []cel.EnvOption{
		ext.NativeTypes(ext.ParseStructTags(true), reflect.TypeFor[who]()),
		cel.ParserExpressionSizeLimit(maxExpression), cel.ParserRecursionLimit(100),
		cel.Variable("who", cel.ObjectType("rules.who")),
	}
	for _, name := range []string{"op", "on", "thread", "graph"} {
		options = append(options, cel.Variable(name, cel.StringType))
	}
	return cel.NewEnv(options...)
})

func (r reader) controlRule(n *yaml.Node) (*controlRule, error) {
	out := &controlRule{reader: r, node: n}
	titles, conditions := 0, (*yaml.Node)(nil)
	title := func(allow bool) func(*yaml.Node) error {
		return func(n *yaml.Node) error {
			if n.Tag == "!!bool" {
				return r.fail(n, "here belongs the rule's name")
			}
			titles++
			out.allow = allow
			return r.name(n, &out.name)
		}
	}
	condition := func(read func(*yaml.Node) error) func(*yaml.Node) error {
		return func(n *yaml.Node) error {
			conditions = n
			return read(n)
		}
	}
	err := r.fields(n, map[string]func(*yaml.Node) error{
		"allow": title(true), "deny": title(false),
		"op":     func(n *yaml.Node) error { return r.ops(n, &out.ops) },
		"graph":  func(n *yaml.Node) error { return r.names(n, &out.graphs) },
		"when":   func(n *yaml.Node) (err error) { out.when, err = r.conditionIn(controlEnvironment, n); return err },
		"reason": func(n *yaml.Node) error { return r.text(n, approval.MaxSummary, &out.reason) },

		"by":          condition(func(n *yaml.Node) error { return r.names(n, &out.by) }),
		"permissions": condition(func(n *yaml.Node) error { return r.names(n, &out.permissions) }),
	})
	switch {
	case err != nil:
		return nil, err
	case titles != 1:
		return nil, r.fail(n, "a rule is named by either allow: NAME or deny: NAME")
	case !out.allow && conditions != nil:
		return nil, r.fail(conditions, "by and permissions go with allow only")
	}
	return out, nil
}

func (r reader) ops(n *yaml.Node, out *[]string) error {
	if err := r.names(n, out); err != nil {
		return err
	}
	for _, op := range *out {
		if !slices.Contains(approval.Ops, approval.Op(op)) {
			return r.fail(n, "%q is none of %v", op, approval.Ops)
		}
	}
	return nil
}

// checkControl refuses names that nobody has, and rules of one name.
func (s *sheet) checkControl() error {
	named := map[string]*controlRule{}
	for _, r := range s.control {
		if other, twice := named[r.name]; twice {
			return r.reader.fail(r.node, "a rule of the name %q is also at %s:%d", r.name, other.reader.file, other.node.Line)
		}
		named[r.name] = r
		if err := s.known(r.reader, r.node, "by has", r.by); err != nil {
			return err
		}
	}
	return nil
}

// known refuses names of people and groups that the sheet does not have.
func (s *sheet) known(r reader, n *yaml.Node, what string, names []string) error {
	for _, name := range names {
		known := s.people
		bare, group := strings.CutPrefix(name, groupPrefix)
		if group {
			known = s.groups
		}
		if _, ok := known[bare]; !ok {
			return r.fail(n, "nobody is named %q: %s people, or groups as group:NAME", name, what)
		}
	}
	return nil
}

// Controls implements approval.ControlPolicy. While the files cannot be read, it is as it was when they could.
func (b *Book) Controls() bool {
	s, _, _ := b.sheet()
	return s != nil && len(s.control) > 0
}

// DecideControl implements approval.ControlPolicy: the first rule that matches decides, and what none allows is refused.
func (b *Book) DecideControl(ctx context.Context, r approval.ControlRequest) (approval.PolicyRuling, error) {
	s, _, err := b.current()
	if err != nil {
		return approval.PolicyRuling{}, err
	}
	see := map[string]any{"op": string(r.Op), "on": r.On, "thread": r.Thread, "graph": r.Graph,
		"who": who{Name: r.Who.Name, Groups: r.Who.Groups, Permissions: r.Who.Permissions, Limits: r.Who.Limits}}
	for _, rule := range s.control {
		if !among(rule.ops, string(r.Op)) || !among(rule.graphs, r.Graph) {
			continue
		}
		match := true
		if rule.when != nil {
			match, err = rule.when.holds(ctx, see)
		}
		var unclear *undecidable
		if errors.As(err, &unclear) {
			return rule.refused(approval.CodePolicy, fmt.Sprintf("the condition at %s:%d %s", filepath.Base(rule.reader.file), rule.node.Line, unclear.why)), nil
		}
		if err != nil {
			return approval.PolicyRuling{}, err
		}
		if match {
			return rule.judge(r.Who), nil
		}
	}
	return approval.PolicyRuling{Code: approval.CodePolicy, Reason: "no rule for control allows it"}, nil
}

func (r *controlRule) judge(p approval.Person) approval.PolicyRuling {
	if !r.allow {
		return r.refused(approval.CodePolicy, "the rules deny it")
	}
	if !(&rule{approvers: r.by}).asks(p) {
		return r.refused(approval.CodeNotYours, fmt.Sprintf("%s may do it", strings.Join(r.by, ", ")))
	}
	for _, permission := range r.permissions {
		if !slices.Contains(p.Permissions, permission) {
			return r.refused(approval.CodePermission, fmt.Sprintf("%s does not have the permission %q now", p.Name, permission))
		}
	}
	return approval.PolicyRuling{Allowed: true, Rule: r.name}
}

func (r *controlRule) refused(code approval.Code, reason string) approval.PolicyRuling {
	if r.reason != "" {
		reason += ": " + r.reason
	}
	return approval.PolicyRuling{Code: code, Reason: reason, Rule: r.name}
}
