package rules

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"superstep.dev/approval"
)

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
		known := map[string]func(*yaml.Node) error{
			"permissions": func(n *yaml.Node) error { return r.names(n, &h.permissions) },
			"limits":      func(n *yaml.Node) error { return r.limits(n, &h.limits) },
		}
		if memberOf {
			known["groups"] = func(n *yaml.Node) error { return r.names(n, &h.groups) }
			known["roles"] = func(n *yaml.Node) error { return r.names(n, &h.roles) }
		}
		// "finance:" with nothing behind it is a group that has nothing of its own.
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
