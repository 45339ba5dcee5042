package rules

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"
	"go.yaml.in/yaml/v3"
	"superstep.dev/approval"
)

// decide finds the first rule that matches and holds the request to it.
func (s *sheet) decide(ctx context.Context, request approval.PolicyRequest) (approval.PolicyRuling, error) {
	params, err := decode(request.Action.Params)
	if err != nil {
		return approval.PolicyRuling{Code: approval.CodeMalformed, Reason: "the parameters are not JSON"}, nil
	}
	see := seen(request, params)
	rejected := request.Verdict == approval.VerdictReject
	for _, r := range s.rules {
		a := request.Action
		if !among(r.tools, a.Tool) || !among(r.graphs, request.Graph) || !among(r.risks, string(risk(a))) {
			continue
		}
		switch match, unclear, err := r.holds(ctx, see); {
		case err != nil:
			return approval.PolicyRuling{}, err
		case unclear != "" && rejected:
			return approval.PolicyRuling{Allowed: true, Rule: r.name}, nil
		case unclear != "":
			return r.refused(approval.CodePolicy, unclear), nil
		case match:
			return r.judge(request, params), nil
		}
	}
	if rejected {
		return approval.PolicyRuling{Allowed: true}, nil
	}
	return approval.PolicyRuling{Code: approval.CodePolicy, Reason: "no rule allows it"}, nil
}

// holds evaluates the rule's condition; unclear says where it is and why it does not decide.
func (r *rule) holds(ctx context.Context, see map[string]any) (match bool, unclear string, err error) {
	if r.when == nil {
		return true, "", nil
	}
	match, unclear, err = r.when.holds(ctx, see)
	if unclear != "" {
		unclear = fmt.Sprintf("the condition at %s:%d %s", filepath.Base(r.reader.file), r.node.Line, unclear)
	}
	return match, unclear, err
}

// refused is a ruling that the rule makes.
func (r *rule) refused(code approval.Code, reason string) approval.PolicyRuling {
	if r.reason != "" {
		reason += ": " + r.reason
	}
	return approval.PolicyRuling{Code: code, Reason: reason, Rule: r.name}
}

// asks reports whether somebody is among those whom the rule names.
func (r *rule) asks(p approval.Person) bool {
	if len(r.who) == 0 || slices.Contains(r.who, p.Name) {
		return true
	}
	return slices.ContainsFunc(p.Groups, func(group string) bool { return slices.Contains(r.who, groupPrefix+group) })
}

func among(names []string, name string) bool { return len(names) == 0 || slices.Contains(names, name) }

func risk(a approval.Action) approval.Risk {
	if a.Risk == "" {
		return approval.RiskMedium
	}
	return a.Risk
}

// judge says what the rule says of a request that it matches.
func (r *approvalRule) judge(request approval.PolicyRequest, params any) approval.PolicyRuling {
	allowed := approval.PolicyRuling{Allowed: true, Rule: r.name, Need: r.need, ValidFor: r.validFor, Pause: r.pause}
	switch rejected := request.Verdict == approval.VerdictReject; {
	case !r.allow && rejected:
		return allowed
	case !r.allow:
		return r.refused(approval.CodePolicy, "the rules deny it")
	case !r.asks(request.Approver):
		return r.refused(approval.CodeNotYours, fmt.Sprintf("%s may answer", strings.Join(r.who, ", ")))
	case rejected:
		return allowed
	case request.Approver.Name == "" && (r.need > 0 || r.separate):
		return r.refused(approval.CodePolicy, "a person must approve it, and silence did")
	}
	for _, check := range []func(approval.PolicyRequest, any) (approval.Code, string){r.checkSeparate, r.checkLimits} {
		if code, problem := check(request, params); problem != "" {
			return r.refused(code, problem)
		}
	}
	return allowed
}

func (r *approvalRule) checkSeparate(request approval.PolicyRequest, _ any) (approval.Code, string) {
	switch {
	case !r.separate:
		return "", ""
	case request.Requester.Name == "":
		return approval.CodeRequester, "who asks and who approves must differ, and nobody is named as who asks (WithRequester)"
	case request.Requester.Name == request.Approver.Name:
		return approval.CodeSamePerson, request.Approver.Name + " asks for it, so somebody else must approve it"
	case request.Verdict == approval.VerdictApprove && slices.Contains(request.Action.Proposers(), request.Approver.Name):
		return approval.CodeSamePerson, request.Approver.Name + " proposed other parameters for it, so somebody else must approve it"
	}
	return "", ""
}

func (r *approvalRule) checkLimits(request approval.PolicyRequest, params any) (approval.Code, string) {
	if request.Verdict != approval.VerdictApprove {
		return "", ""
	}
	for _, path := range r.limits {
		number, ok := lookUp(params, path).(json.Number)
		if !ok {
			return approval.CodePolicy, fmt.Sprintf("the parameters have no number %s to hold a limit to", path)
		}
		limit, has := request.Approver.Limits[path]
		if !has {
			return approval.CodePolicy, fmt.Sprintf("%q has no limit for %s, so may approve none", request.Approver.Name, path)
		}
		if above(number, limit) {
			return approval.CodePolicy, fmt.Sprintf("%s may approve %s up to %s", request.Approver.Name, path, decimal(limit))
		}
	}
	return "", ""
}

func lookUp(params any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		object, _ := params.(map[string]any)
		params = object[name]
	}
	return params
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// above compares decimals as they are written, so that 0.3 is not above a limit of 0.3. The sign does not matter: a
// refund of a negative amount is a charge.
func above(number json.Number, limit float64) bool {
	literal := strings.TrimPrefix(number.String(), "-")
	near, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return true // beyond the range of doubles, and too large to be worked out
	}
	if near == 0 {
		return false // at most the least double, where exact decimals grow without bound
	}
	exact, ok := new(big.Rat).SetString(literal)
	most, _ := new(big.Rat).SetString(decimal(limit))
	return !ok || exact.Cmp(most) > 0
}

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
		"permissions": func(n *yaml.Node) error { return r.anyNames(n, &out.permissions) },
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
