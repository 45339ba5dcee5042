package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"superstep.dev/internal/clip"
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
	is, needsGroups := g.among(p, names)
	if is {
		return nil
	}
	if needsGroups {
		return refuse(CodeUnavailable, "the key %s signs for groups, and this worker's gate has no directory that knows who is in them", quote(keyID))
	}
	return mismatch
}

// person returns somebody as they are now. Without a directory a name is all that is known.
func (g *Gate) person(ctx context.Context, name string) (Person, error) {
	if g.Directory == nil {
		return Person{Name: name}, nil
	}
	p, err := g.Directory.Person(ctx, name)
	if p.Name == "" {
		p.Name = name
	}
	return p, err
}

func isUnknown(err error) bool {
	_, is := errors.AsType[*UnknownPersonError](err)
	return is
}

// asked returns the approver when they are among those who are asked; nobody named means that the policy says who.
func (g *Gate) asked(ctx context.Context, name string, asked []string) (Person, error) {
	if isGroup(name) {
		return Person{}, refuse(CodeUnknown, "%s names a group, and people answer", quote(name))
	}
	p, err := g.person(ctx, name)
	if isUnknown(err) {
		return Person{}, refuse(CodeUnknown, "the directory knows nobody of the name %s", quote(name))
	}
	if err != nil {
		return Person{}, err
	}
	is, needsGroups := g.among(p, asked)
	if is || len(asked) == 0 {
		return p, nil
	}
	if needsGroups {
		return Person{}, refuse(CodeUnavailable, "groups are asked, and this worker's gate has no directory that knows who is in them")
	}
	return Person{}, refuse(CodeNotYours, "%s is not asked; %s may answer", quote(name), list(asked))
}

// among reports whether somebody is one of those people or in one of those groups. needsGroups says that nobody knows, because
// there are groups and no directory.
func (g *Gate) among(p Person, names []string) (is, needsGroups bool) {
	groups := 0
	for _, name := range names {
		group, isGroup := strings.CutPrefix(name, groupPrefix)
		if name == p.Name || isGroup && slices.Contains(p.Groups, group) {
			return true, false
		}
		if isGroup {
			groups++
		}
	}
	return false, groups > 0 && g.Directory == nil
}

// list names a few.
func list(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func (g *Gate) checkPermissions(p Person, a Action) error {
	if missing := g.missing(p, a); missing != "" {
		return refuse(CodePermission, "%s does not have the permission %s now", p.Name, quote(missing))
	}
	return nil
}

func (g *Gate) missing(p Person, a Action) string {
	if g.Directory == nil {
		return ""
	}
	for _, permission := range a.Permissions {
		if !slices.Contains(p.Permissions, permission) {
			return permission
		}
	}
	return ""
}

// requester returns on whose behalf the action would be done. The person is set, at least by name, with an error too.
func (g *Gate) requester(ctx context.Context, a Action) (Person, error) {
	if a.Requester == "" {
		if missing := g.missing(Person{}, a); missing != "" {
			return Person{}, refuse(CodeRequester, "who asks for it needs the permission %s, and nobody is named: start the run with its "+
				"requester (WithRequester)", quote(missing))
		}
		return Person{}, nil
	}
	p, err := g.person(ctx, a.Requester)
	if isUnknown(err) {
		return p, refuse(CodeRequester, "the directory knows nobody of the name %s, who asks for it", quote(a.Requester))
	}
	if err != nil {
		return p, err
	}
	if missing := g.missing(p, a); missing != "" {
		return p, refuse(CodeRequester, "%s, who asks for it, does not have the permission %s now", p.Name, quote(missing))
	}
	return p, nil
}

// decide asks the policy, and sets how many approvals are needed and what was asked.
func (g *Gate) decide(ctx context.Context, r *Ruling, request PolicyRequest) error {
	version, err := g.version(ctx)
	if err != nil {
		return err
	}
	r.Policy = version
	r.Need = max(r.Need, request.Action.Needs(0))
	r.ValidFor = request.Action.Validity(r.ValidFor)
	request.Now = r.At
	if g.Policy == nil {
		return nil
	}
	said, err := g.Policy.Decide(ctx, request)
	if err != nil {
		return err
	}
	if said.Need < 0 || said.Need > MaxQuorum {
		return fmt.Errorf("the policy wants %d approvals, not 0 to %d", said.Need, MaxQuorum)
	}
	if said.ValidFor < 0 {
		return fmt.Errorf("the policy lets approvals count for %s, which is no time", said.ValidFor)
	}
	if err := said.check(); err != nil {
		return err
	}
	r.Need, r.ValidFor, r.Pause = max(r.Need, said.Need), sooner(r.ValidFor, said.ValidFor), said.Pause
	return nil
}

// version returns that of policy and directory: one, when they are the same thing.
func (g *Gate) version(ctx context.Context) (string, error) {
	var versions []string
	for _, asked := range []interface {
		Version(context.Context) (string, error)
	}{g.Policy, g.Directory} {
		if asked == nil {
			continue
		}
		v, err := asked.Version(ctx)
		if err != nil {
			return "", err
		}
		versions = append(versions, v)
	}
	return clip.Text(strings.Join(slices.Compact(versions), " "), MaxName), nil
}
