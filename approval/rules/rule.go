package rules

import (
	"maps"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"go.yaml.in/yaml/v3"

	"superstep.dev/approval"
)

// rule is what every rule has, as written.
type rule struct {
	name   string
	allow  bool
	reader reader
	node   *yaml.Node

	graphs []string
	when   *condition
	who    []string // the people and groups that an allow rule allows; none means everybody
	reason string
}

// approvalRule is a rule for what is answered and used.
type approvalRule struct {
	rule
	tools, risks []string

	need     int
	validFor time.Duration
	separate bool
	limits   []string
	pause    string
}

// sheet is what all files together say.
type sheet struct {
	people, groups, roles map[string]holder
	rules                 []*approvalRule
	control               []*controlRule
}

const maxRules = 1_000

func (r reader) sheet(n *yaml.Node, into *sheet) error {
	return r.fields(n, fieldReaders{
		"people":  func(n *yaml.Node) error { return r.holders(n, into.people, true) },
		"groups":  func(n *yaml.Node) error { return r.holders(n, into.groups, false) },
		"roles":   func(n *yaml.Node) error { return r.holders(n, into.roles, false) },
		"control": func(n *yaml.Node) error { return readRules(r, n, &into.control, r.controlRule) },
		"rules":   func(n *yaml.Node) error { return readRules(r, n, &into.rules, r.approvalRule) },
	})
}

// readRules reads a list of rules and appends them to those of other files: at most maxRules together.
func readRules[R any](r reader, n *yaml.Node, into *[]R, read func(*yaml.Node) (R, error)) error {
	if n.Kind != yaml.SequenceNode {
		return r.fail(n, "here belongs a list of rules")
	}
	if len(*into)+len(n.Content) > maxRules {
		return r.fail(n, "there are more than %d rules", maxRules)
	}
	for _, item := range n.Content {
		rule, err := read(item)
		if err != nil {
			return err
		}
		*into = append(*into, rule)
	}
	return nil
}

// fieldReaders read the fields of a mapping, by name.
type fieldReaders = map[string]func(*yaml.Node) error

// rule reads a rule with what a kind of rules has: matches are fields that say what a rule is about, grants those that only an
// allow rule has. A deny rule with one of these would read as if it allowed the rest.
func (r reader) rule(n *yaml.Node, out *rule, sees func() (*cel.Env, error), matches, grants fieldReaders) error {
	out.reader, out.node = r, n
	titles, granted := 0, (*yaml.Node)(nil)
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
	known := fieldReaders{
		"allow": title(true), "deny": title(false),
		"graph":  func(n *yaml.Node) error { return r.names(n, &out.graphs) },
		"when":   func(n *yaml.Node) (err error) { out.when, err = r.condition(sees, n); return err },
		"reason": func(n *yaml.Node) error { return r.text(n, approval.MaxSummary, &out.reason) },
	}
	maps.Copy(known, matches)
	for name, read := range grants {
		known[name] = func(n *yaml.Node) error {
			granted = n
			return read(n)
		}
	}
	switch err := r.fields(n, known); {
	case err != nil:
		return err
	case titles != 1:
		return r.fail(n, "a rule is named by either allow: NAME or deny: NAME")
	case !out.allow && granted != nil:
		return r.fail(granted, "%s go with allow only", strings.Join(slices.Sorted(maps.Keys(grants)), ", "))
	}
	return nil
}

func (r reader) approvalRule(n *yaml.Node) (*approvalRule, error) {
	out := &approvalRule{}
	return out, r.rule(n, &out.rule, environment, fieldReaders{
		"tool": func(n *yaml.Node) error { return r.names(n, &out.tools) },
		"risk": func(n *yaml.Node) error {
			return words(r, n, &out.risks, approval.RiskLow, approval.RiskMedium, approval.RiskHigh, approval.RiskCritical)
		},
	}, fieldReaders{
		"need":      func(n *yaml.Node) error { return r.count(n, approval.MaxQuorum, &out.need) },
		"valid_for": func(n *yaml.Node) error { return r.duration(n, &out.validFor) },
		"separate":  func(n *yaml.Node) error { return r.flag(n, &out.separate) },
		"limit":     func(n *yaml.Node) error { return r.anyNames(n, &out.limits) },
		"pause":     func(n *yaml.Node) error { return r.text(n, approval.MaxSummary, &out.pause) },
		"approvers": func(n *yaml.Node) error { return r.names(n, &out.who) },
	})
}

// check refuses names of groups, roles and people that are not declared, which are spelling mistakes, and rules of one name.
func (s *sheet) check() error {
	for _, h := range s.people {
		for _, list := range []struct {
			what  string
			names []string
			known map[string]holder
		}{{"group", h.groups, s.groups}, {"role", h.roles, s.roles}} {
			for _, name := range list.names {
				if _, ok := list.known[name]; !ok {
					return h.reader.fail(h.node, "there is no %s %q: write it under %ss", list.what, name, list.what)
				}
			}
		}
	}
	named := map[string]*rule{}
	for _, r := range s.rules {
		if err := s.checkRule(named, &r.rule, "approvers are"); err != nil {
			return err
		}
	}
	named = map[string]*rule{}
	for _, r := range s.control {
		if err := s.checkRule(named, &r.rule, "by has"); err != nil {
			return err
		}
	}
	return nil
}

// checkRule refuses a rule of a name that another one has, and names of people and groups that the sheet does not have.
func (s *sheet) checkRule(named map[string]*rule, r *rule, what string) error {
	if other, twice := named[r.name]; twice {
		return r.reader.fail(r.node, "a rule of the name %q is also at %s:%d", r.name, other.reader.file, other.node.Line)
	}
	named[r.name] = r
	for _, name := range r.who {
		known := s.people
		bare, group := strings.CutPrefix(name, groupPrefix)
		if group {
			known = s.groups
		}
		if _, ok := known[bare]; !ok {
			return r.reader.fail(r.node, "nobody is named %q: %s people, or groups as group:NAME", name, what)
		}
	}
	return nil
}

const groupPrefix = "group:"

// holder is a person, a group or a role, as written.
type holder struct {
	node          *yaml.Node
	reader        reader
	groups, roles []string
	permissions   []string
	limits        map[string]float64
}

// holders reads a mapping of names to what they have; memberOf says that they have groups and roles.
func (r reader) holders(n *yaml.Node, into map[string]holder, memberOf bool) error {
	return r.each(n, func(name string, key, value *yaml.Node) error {
		if strings.HasPrefix(name, groupPrefix) {
			return r.fail(key, "a name does not begin with %s, which is how groups are asked", groupPrefix)
		}
		if other, twice := into[name]; twice {
			return r.fail(key, "%q is there twice, also in %s:%d", name, other.reader.file, other.node.Line)
		}
		h := holder{node: key, reader: r}
		known := fieldReaders{
			"permissions": func(n *yaml.Node) error { return r.anyNames(n, &h.permissions) },
			"limits":      func(n *yaml.Node) error { return r.limits(n, &h.limits) },
		}
		if memberOf {
			known["groups"] = func(n *yaml.Node) error { return r.anyNames(n, &h.groups) }
			known["roles"] = func(n *yaml.Node) error { return r.anyNames(n, &h.roles) }
		}
		// "finance:" without a value is a group that has nothing of its own.
		if value.Tag != "!!null" {
			if err := r.fields(value, known); err != nil {
				return err
			}
		}
		into[name] = h
		return nil
	})
}

func (r reader) limits(n *yaml.Node, out *map[string]float64) error {
	*out = map[string]float64{}
	return r.each(n, func(name string, _, value *yaml.Node) error {
		var limit float64
		err := r.number(value, &limit)
		(*out)[name] = limit
		return err
	})
}

// person returns somebody with what their groups and roles give them.
func (s *sheet) person(name string) (approval.Person, error) {
	h, known := s.people[name]
	if !known {
		return approval.Person{}, &approval.UnknownPersonError{Name: name}
	}
	p := approval.Person{Name: name, Groups: slices.Clone(h.groups), Permissions: slices.Clone(h.permissions), Limits: map[string]float64{}}
	give := func(from holder) {
		p.Permissions = append(p.Permissions, from.permissions...)
		for name, limit := range from.limits {
			p.Limits[name] = max(p.Limits[name], limit)
		}
	}
	for _, group := range h.groups {
		give(s.groups[group])
	}
	for _, role := range h.roles {
		give(s.roles[role])
	}
	for name, limit := range h.limits {
		p.Limits[name] = limit
	}
	slices.Sort(p.Groups)
	slices.Sort(p.Permissions)
	p.Groups, p.Permissions = slices.Compact(p.Groups), slices.Compact(p.Permissions)
	return p, nil
}
