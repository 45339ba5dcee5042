package assistant

import (
	"encoding/json"
	"maps"
	"time"
)

// Object is a JSON object.
type Object = map[string]json.RawMessage

// Assistant is a graph with a name, a configuration and a context, as the protocol writes it.
type Assistant struct {
	ID          string    `json:"assistant_id"`
	Graph       string    `json:"graph_id"`
	Config      Object    `json:"config"`
	Context     Object    `json:"context"`
	Metadata    Object    `json:"metadata"`
	Name        string    `json:"name"`
	Created     time.Time `json:"created_at"`
	Updated     time.Time `json:"updated_at"`
	Version     int       `json:"version"`
	Description *string   `json:"description"`
}

// Change is what is to be different. What is nil stays; metadata is merged, all else replaced.
type Change struct {
	Graph       string  `json:"graph,omitempty"`
	Name        *string `json:"name,omitempty"`
	Description *string `json:"description,omitempty"`
	Config      Object  `json:"config,omitempty"`
	Context     Object  `json:"context,omitempty"`
	Metadata    Object  `json:"metadata,omitempty"`
}

// Configurable is the member of a configuration that is the same as the context.
const Configurable = "configurable"

// With returns the assistant with a change, under the same version. Context and config.configurable are one: what is given of one of
// them is the other too.
func (a Assistant) With(c Change) Assistant {
	if c.Graph != "" {
		a.Graph = c.Graph
	}
	if c.Name != nil {
		a.Name = *c.Name
	}
	if c.Description != nil {
		a.Description = c.Description
	}
	a.Metadata = merged(a.Metadata, c.Metadata)
	if c.Config != nil {
		var own Object
		if json.Unmarshal(c.Config[Configurable], &own) == nil && own != nil {
			a.Context = own
		}
		a.Config = c.Config
	}
	if c.Context != nil {
		a.Context = c.Context
	}
	a.Config, a.Context = merged(a.Config), merged(a.Context)
	delete(a.Config, Configurable)
	if len(a.Context) > 0 {
		a.Config[Configurable] = encoded(a.Context)
	}
	return a
}

// merged is a new object with all members, the later ones over the earlier.
func merged(from ...Object) Object {
	out := Object{}
	for _, o := range from {
		//workflowcheck:ignore A copy does not depend on the order in which the members come.
		maps.Copy(out, o)
	}
	return out
}

func encoded(o Object) json.RawMessage {
	raw, err := json.Marshal(o)
	if err != nil {
		return json.RawMessage("{}") // a member that is no JSON: it was never read from any
	}
	return raw
}

// Record is an assistant with its versions.
type Record struct {
	ID string `json:"id"`
	// Current is the version that counts.
	Current int `json:"current"`
	// Versions are in the order in which they were made. Created of each is when that was.
	Versions []Assistant `json:"versions"`
	Created  time.Time   `json:"created"`
	Updated  time.Time   `json:"updated"`
	// Changes grows with each change, also when an assistant is made under an id that was deleted.
	Changes int64 `json:"changes"`
	Deleted bool  `json:"deleted,omitempty"`
}

// Latest is the assistant as it counts now.
func (r *Record) Latest() Assistant {
	a := *r.version(r.Current)
	a.Created, a.Updated = r.Created, r.Updated
	return a
}

// version is nil when there is none of that number (any more).
func (r *Record) version(number int) *Assistant {
	for i := range r.Versions {
		if r.Versions[i].Version == number {
			return &r.Versions[i]
		}
	}
	return nil
}

// The bounds of an assistant, in bytes of JSON and in versions.
const (
	longest      = 64 << 10
	longestAll   = 1 << 20
	mostVersions = 100
)

// tooLarge reports whether a version is beyond its bound.
func tooLarge(a Assistant) bool {
	raw, err := json.Marshal(a)
	return err != nil || len(raw) > longest
}

// add makes a version the one that counts. The oldest are forgotten when there are too many.
func (r *Record) add(a Assistant, now time.Time) {
	a.ID, a.Version, a.Created, a.Updated = r.ID, 1, now, now
	if n := len(r.Versions); n > 0 {
		a.Version = r.Versions[n-1].Version + 1
	}
	r.Versions, r.Current = append(r.Versions, a), a.Version
	r.changed(now)
	size := 0
	for i := len(r.Versions) - 1; i >= 0; i-- {
		raw, _ := json.Marshal(r.Versions[i]) // it was one when it came
		if size += len(raw); size > longestAll || len(r.Versions)-i > mostVersions {
			r.Versions = append([]Assistant(nil), r.Versions[i+1:]...)
			return
		}
	}
}

func (r *Record) changed(now time.Time) {
	r.Changes++
	r.Updated = now
	if r.Created.IsZero() {
		r.Created = now
	}
}

// Line is what lists know of an assistant.
type Line struct {
	ID       string    `json:"id"`
	Graph    string    `json:"graph"`
	Name     string    `json:"name"`
	Metadata Object    `json:"metadata,omitempty"`
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`
	Changes  int64     `json:"changes"`
	Deleted  bool      `json:"deleted,omitempty"`
}

// Line is what lists know of the assistant.
func (r *Record) Line() Line {
	a := r.Latest()
	return Line{ID: r.ID, Graph: a.Graph, Name: a.Name, Metadata: a.Metadata, Created: r.Created, Updated: r.Updated, Changes: r.Changes, Deleted: r.Deleted}
}

// Place is where a list has the line, and how new it is.
func (l Line) Place() (id string, created time.Time, version int64, deleted bool) {
	return l.ID, l.Created, l.Changes, l.Deleted
}
