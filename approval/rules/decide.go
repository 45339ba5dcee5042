package rules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"superstep.dev/approval"
)

// decide finds the first rule that matches and holds the request to it.
func (s *sheet) decide(ctx context.Context, request approval.PolicyRequest) (approval.PolicyRuling, error) {
	params, err := decode(request.Action.Params)
	if err != nil {
		return refused(nil, approval.CodeMalformed, "the parameters are not JSON"), nil
	}
	see := seen(request, params)
	for _, r := range s.rules {
		match, err := r.matches(ctx, request, see)
		var unclear *undecidable
		if errors.As(err, &unclear) {
			return r.unclear(request, unclear.why), nil
		}
		if err != nil {
			return approval.PolicyRuling{}, err
		}
		if match {
			return r.judge(request, params), nil
		}
	}
	if request.Verdict == approval.VerdictReject {
		return approval.PolicyRuling{Allowed: true}, nil
	}
	return refused(nil, approval.CodePolicy, "no rule allows it"), nil
}

func (r *rule) matches(ctx context.Context, request approval.PolicyRequest, see map[string]any) (bool, error) {
	a := request.Action
	if !among(r.tools, a.Tool) || !among(r.graphs, request.Graph) || !among(r.risks, string(risk(a))) {
		return false, nil
	}
	if r.when == nil {
		return true, nil
	}
	return r.when.holds(ctx, see)
}

func among(names []string, name string) bool { return len(names) == 0 || slices.Contains(names, name) }

func risk(a approval.Action) approval.Risk {
	if a.Risk == "" {
		return approval.RiskMedium
	}
	return a.Risk
}

// unclear refuses what an expression does not decide about.
func (r *rule) unclear(request approval.PolicyRequest, why string) approval.PolicyRuling {
	if request.Verdict == approval.VerdictReject {
		return approval.PolicyRuling{Allowed: true, Rule: r.name}
	}
	where := fmt.Sprintf("%s:%d", filepath.Base(r.reader.file), r.node.Line)
	return refused(r, approval.CodePolicy, "the condition at "+where+" "+why)
}

func refused(r *rule, code approval.Code, reason string) approval.PolicyRuling {
	ruling := approval.PolicyRuling{Code: code, Reason: reason}
	if r != nil {
		ruling.Rule = r.name
		if r.reason != "" {
			ruling.Reason += ": " + r.reason
		}
	}
	return ruling
}

// judge says what the rule says of a request that it matches.
func (r *rule) judge(request approval.PolicyRequest, params any) approval.PolicyRuling {
	allowed := approval.PolicyRuling{Allowed: true, Rule: r.name, Need: r.need, ValidFor: r.validFor}
	switch rejected := request.Verdict == approval.VerdictReject; {
	case !r.allow && rejected:
		return allowed
	case !r.allow:
		return refused(r, approval.CodePolicy, "the rules deny it")
	case !r.asks(request.Approver):
		return refused(r, approval.CodeNotYours, fmt.Sprintf("%s may answer", strings.Join(r.approvers, ", ")))
	case rejected:
		return allowed
	case request.Approver.Name == "" && (r.need > 0 || r.separate):
		return refused(r, approval.CodePolicy, "a person must approve it, and silence did")
	}
	for _, check := range []func(approval.PolicyRequest, any) (approval.Code, string){r.checkSeparate, r.checkLimits} {
		if code, problem := check(request, params); problem != "" {
			return refused(r, code, problem)
		}
	}
	return allowed
}

func (r *rule) asks(p approval.Person) bool {
	if len(r.approvers) == 0 || slices.Contains(r.approvers, p.Name) {
		return true
	}
	return slices.ContainsFunc(p.Groups, func(group string) bool { return slices.Contains(r.approvers, groupPrefix+group) })
}

func (r *rule) checkSeparate(request approval.PolicyRequest, _ any) (approval.Code, string) {
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

func (r *rule) checkLimits(request approval.PolicyRequest, params any) (approval.Code, string) {
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
