package approval

import (
	"context"
	"slices"
	"strings"
)

// Owner is whose a signing key is: a person's, an issuer's, or a worker's. One of Person, Issuer and Worker is set.
type Owner struct {
	// Person is the one who holds the key: what it signs counts for nobody else.
	Person string
	// Issuer names a service that holds the key and knows who people are: one that has them log in, say. What it signs
	// counts for those in For, people and as "group:NAME" groups; none means everybody.
	Issuer string
	For    []string
	// Worker names workers that hold the key. What it signs are the ends of audits ([Head]), and nothing that anybody
	// approves or asks for.
	Worker string
}

// Check returns an [*InvalidError] when that owns no key: neither or both of Person and Issuer, a group as the person,
// For without an issuer, or names that [Action.Check] would refuse.
func (o Owner) Check() error {
	field, problem := "person", ""
	if o.Worker != "" {
		if problem = nameProblem(o.Worker); problem == "" && (o.Person != "" || o.Issuer != "" || len(o.For) > 0) {
			problem = "a key of workers is nobody else's, and signs for nobody"
		}
		if problem != "" {
			return &InvalidError{Of: "key", Field: "worker", Problem: problem}
		}
		return nil
	}
	switch {
	case o.Person == "" && o.Issuer == "":
		field, problem = "", "it says neither whose key it is (a person), nor that it is an issuer's, who signs for others"
	case o.Person != "" && o.Issuer != "":
		field, problem = "", "a key is a person's or an issuer's, not both"
	case isGroup(o.Person):
		problem = "a key is one person's: a group's is an issuer's, for that group"
	case o.Issuer == "" && len(o.For) > 0:
		field, problem = "for", "whom a key signs for is said of an issuer's: a person's signs for that person"
	case o.Person != "":
		problem = nameProblem(o.Person)
	default:
		field, problem = "issuer", nameProblem(o.Issuer)
		if problem == "" {
			field, problem = "for", namesProblem(o.For)
		}
	}
	if problem != "" {
		return &InvalidError{Of: "key", Field: field, Problem: problem}
	}
	return nil
}

// String says whose key it is.
func (o Owner) String() string {
	if o.Worker != "" {
		return "the worker " + o.Worker + "'s"
	}
	if o.Issuer == "" {
		return o.Person + "'s"
	}
	text := "the issuer " + o.Issuer + "'s"
	if len(o.For) > 0 {
		text += ", for " + list(o.For)
	}
	return text
}

// Equal reports whether both are the same.
func (o Owner) Equal(other Owner) bool {
	return o.Person == other.Person && o.Issuer == other.Issuer && o.Worker == other.Worker && slices.Equal(o.For, other.For)
}

// owns checks that what a key of that owner signs counts for somebody of that name. A directory that knows somebody by
// several names knows whose key it is by any of them.
func (g *Gate) owns(ctx context.Context, keyID string, o Owner, name string) error {
	if err := o.Check(); err != nil {
		return refuse(CodeWrongKey, "nobody knows whose the key %s is: %s", quote(keyID), err)
	}
	if o.Worker != "" {
		return refuse(CodeWrongKey, "the key %s is %s, which signs audits and answers for nobody", quote(keyID), o)
	}
	names := o.For
	if o.Person != "" {
		names = []string{o.Person}
	}
	if len(names) == 0 || slices.Contains(names, name) {
		return nil
	}
	mismatch := refuse(CodeWrongKey, "the key %s is %s, and it signs for %s: sign with a key of %s", quote(keyID), o, quote(name), quote(name))
	p, err := g.person(ctx, name)
	if isUnknown(err) {
		return mismatch
	}
	if err != nil {
		return err
	}
	if slices.Contains(names, p.Name) {
		return nil
	}
	groups := 0
	for _, name := range names {
		if group, is := strings.CutPrefix(name, groupPrefix); is {
			if slices.Contains(p.Groups, group) {
				return nil
			}
			groups++
		}
	}
	if groups > 0 && g.Directory == nil {
		return refuse(CodeUnavailable, "the key %s signs for groups, and this worker's gate has no directory that knows who is in them", quote(keyID))
	}
	return mismatch
}
