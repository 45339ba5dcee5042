package rules

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"
	"go.yaml.in/yaml/v3"

	"superstep.dev/approval"
)

// controlRule is a rule for what is done to runs.
type controlRule struct {
	rule
	ops, permissions []string
}

// What a control rule's expression sees.
var controlEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	return newEnvironment([]string{"op", "on", "thread", "graph"},
		ext.NativeTypes(ext.ParseStructTags(true), reflect.TypeFor[who]()), cel.Variable("who", cel.ObjectType("rules.who")))
})

func (r reader) controlRule(n *yaml.Node) (*controlRule, error) {
	out := &controlRule{}
	return out, r.rule(n, &out.rule, controlEnvironment, fieldReaders{
		"op": func(n *yaml.Node) error { return words(r, n, &out.ops, approval.Ops...) },
	}, fieldReaders{
		"by":          func(n *yaml.Node) error { return r.names(n, &out.who) },
		"permissions": func(n *yaml.Node) error { return r.names(n, &out.permissions) },
	})
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
	see := map[string]any{"op": string(r.Op), "on": r.On, "thread": r.Thread, "graph": r.Graph, "who": sight(r.Who)}
	for _, rule := range s.control {
		if !among(rule.ops, string(r.Op)) || !among(rule.graphs, r.Graph) {
			continue
		}
		switch match, unclear, err := rule.holds(ctx, see); {
		case err != nil:
			return approval.PolicyRuling{}, err
		case unclear != "":
			return rule.refused(approval.CodePolicy, unclear), nil
		case match:
			return rule.judge(r.Who), nil
		}
	}
	return approval.PolicyRuling{Code: approval.CodePolicy, Reason: "no rule for control allows it"}, nil
}

func (r *controlRule) judge(p approval.Person) approval.PolicyRuling {
	if !r.allow {
		return r.refused(approval.CodePolicy, "the rules deny it")
	}
	if !r.asks(p) {
		return r.refused(approval.CodeNotYours, fmt.Sprintf("%s may do it", strings.Join(r.who, ", ")))
	}
	for _, permission := range r.permissions {
		if !slices.Contains(p.Permissions, permission) {
			return r.refused(approval.CodePermission, fmt.Sprintf("%s does not have the permission %q now", p.Name, permission))
		}
	}
	return approval.PolicyRuling{Allowed: true, Rule: r.name}
}
