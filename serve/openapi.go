package serve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"superstep.dev/serve/assistant"
	"superstep.dev/serve/cron"
	"superstep.dev/serve/record"
)

// components are the types that the description names.
var components = map[reflect.Type]string{
	of[okOut]():               "Ok",
	of[infoOut]():             "Info",
	of[refusal]():             "Refusal",
	of[assistantBody]():       "AssistantRequest",
	of[assistantSearch]():     "AssistantSearch",
	of[assistantCount]():      "AssistantCount",
	of[assistant.Assistant](): "Assistant",
	of[versionSearch]():       "VersionSearch",
	of[latestBody]():          "VersionRequest",
	of[drawing]():             "Graph",
	of[schemasOut]():          "Schemas",
	of[threadBody]():          "ThreadRequest",
	of[metadataBody]():        "MetadataRequest",
	of[threadSearch]():        "ThreadSearch",
	of[threadCount]():         "ThreadCount",
	of[threadTTL]():           "TTLRequest",
	of[threadOut]():           "Thread",
	of[asked]():               "Interrupt",
	of[record.Failure]():      "Failure",
	of[place]():               "Checkpoint",
	of[checkpointRef]():       "CheckpointReference",
	of[taskOut]():             "Task",
	of[stateOut]():            "State",
	of[stateAtBody]():         "StateRequest",
	of[updateBody]():          "UpdateRequest",
	of[updateOut]():           "Update",
	of[historyBody]():         "HistoryRequest",
	of[runRequest]():          "RunRequest",
	of[config]():              "RunConfig",
	of[command]():             "Resumption",
	of[runOut]():              "Run",
	of[cancelBody]():          "CancelRequest",
	of[cronBody]():            "CronRequest",
	of[cronSearch]():          "CronSearch",
	of[cronCount]():           "CronCount",
	of[cron.Cron]():           "Cron",
	of[itemBody]():            "ItemRequest",
	of[itemSearch]():          "ItemSearch",
	of[namespaceSearch]():     "NamespaceSearch",
	of[commandBody]():         "Command",
	of[commandAnswer]():       "CommandAnswer",
	of[subscription]():        "Subscription",
}

// needed are the fields that a request cannot leave out.
var needed = map[string][]string{"RunRequest": {"assistant_id"}, "VersionRequest": {"version"},
	"Command": {"id", "method"}, "Subscription": {"channels"}}

const schemas = "#/components/schemas/"

// written are the schemas of types that say themselves how they are read and written.
func written() map[reflect.Type]*jsonschema.Schema {
	text := &jsonschema.Schema{Type: "string"}
	texts := &jsonschema.Schema{Types: []string{"array", "null"}, Items: text}
	known := map[reflect.Type]*jsonschema.Schema{
		of[json.RawMessage]():            {},
		of[object]():                     {Types: []string{"object", "null"}, AdditionalProperties: &jsonschema.Schema{}},
		of[map[string]json.RawMessage](): {Types: []string{"object", "null"}, AdditionalProperties: &jsonschema.Schema{}},
		of[breakpoints]():                {AnyOf: []*jsonschema.Schema{text.CloneSchemas(), texts.CloneSchemas()}},
		of[list]():                       {AnyOf: []*jsonschema.Schema{text.CloneSchemas(), texts}},
		of[beforeRef]():                  {AnyOf: []*jsonschema.Schema{text.CloneSchemas(), {Type: "object"}}},
		of[time.Time]():                  {Type: "string", Format: "date-time"},
		of[shownTime]():                  {Type: "string", Format: "date-time"},
	}
	for t, name := range components {
		known[t] = &jsonschema.Schema{Ref: schemas + name}
	}
	return known
}

// schemaOf is the schema of a type, in which components are named.
func schemaOf(t reflect.Type) (*jsonschema.Schema, error) {
	known := written()
	delete(known, t)
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		return nil, fmt.Errorf("the type %s has no schema: %w", t, err)
	}
	request := isRequest(components[t])
	asRead(s, request)
	if request {
		asSaid(s, t)
	}
	if t == of[cronBody]() { // its body is that of its runs, too
		s.AllOf = []*jsonschema.Schema{{Ref: schemas + components[of[runRequest]()]}}
	}
	if fields := needed[components[t]]; fields != nil {
		s.Required = fields
	}
	return s, nil
}

// isRequest reports whether a component is a part of what clients send.
func isRequest(name string) bool {
	return needed[name] != nil || slices.ContainsFunc([]string{"Request", "Search", "Count", "RunConfig", "Resumption", "Reference"},
		func(end string) bool { return strings.HasSuffix(name, end) })
}

// asSaid makes of the schema of a struct what its fields have to say: see fits.
func asSaid(s *jsonschema.Schema, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			asSaid(s, f.Type)
			continue
		}
		says, of := strings.Split(f.Tag.Get(tagSays), ","), s.Properties[name]
		if slices.Contains(says, saysAlways) {
			s.Required = append(s.Required, name)
		}
		if of == nil || slices.Contains(says, saysNull) {
			continue
		}
		of.Types = slices.DeleteFunc(slices.Clone(of.Types), func(kind string) bool { return kind == "null" })
		if len(of.Types) == 1 {
			of.Type, of.Types = of.Types[0], nil
		}
	}
}

// asRead makes of the schema of a Go type that of what is read into it, or written of it: unknown fields are ignored, and of requests
// all may be left out.
func asRead(s *jsonschema.Schema, request bool) {
	if s == nil {
		return
	}
	if s.Ref != "" && s.Types != nil { // a pointer to a component
		s.AnyOf, s.Ref, s.Types = []*jsonschema.Schema{{Ref: s.Ref}, {Type: "null"}}, "", nil
	}
	if s.Properties != nil {
		s.AdditionalProperties = nil
	}
	if request {
		s.Required = nil
	}
	for _, below := range s.Properties {
		asRead(below, request)
	}
	asRead(s.Items, request)
	asRead(s.AdditionalProperties, request)
}

// The parts of the description, as OpenAPI 3.1 names them.
type (
	described struct {
		OpenAPI    string                          `json:"openapi"`
		Info       map[string]string               `json:"info"`
		Security   []map[string][]string           `json:"security,omitempty"`
		Paths      map[string]map[string]operation `json:"paths"`
		Components struct {
			Schemas map[string]*jsonschema.Schema `json:"schemas"`
			Ways    map[string]map[string]string  `json:"securitySchemes"`
		} `json:"components"`
	}
	operation struct {
		ID         string                 `json:"operationId"`
		Summary    string                 `json:"summary"`
		Tags       []string               `json:"tags"`
		Parameters []parameter            `json:"parameters,omitempty"`
		Body       *content               `json:"requestBody,omitempty"`
		Responses  map[string]content     `json:"responses"`
		Security   *[]map[string][]string `json:"security,omitempty"`
	}
	parameter struct {
		Name     string             `json:"name"`
		In       string             `json:"in"`
		Required bool               `json:"required,omitempty"`
		Schema   *jsonschema.Schema `json:"schema"`
	}
	content struct {
		Description string           `json:"description,omitempty"`
		Content     map[string]media `json:"content,omitempty"`
	}
	media struct {
		Schema *jsonschema.Schema `json:"schema"`
	}
)

var inPath = regexp.MustCompile(`\{([a-z_]+)\}`)

// describe makes the description of the paths.
func describe(routes []route) (d described, err error) {
	d = described{OpenAPI: "3.1.0", Info: map[string]string{"title": "Superstep", "version": protocolVersion,
		"description": "The protocol of LangGraph's agent server over durable threads."}, Paths: map[string]map[string]operation{}}
	d.Components.Schemas = map[string]*jsonschema.Schema{}
	d.Components.Ways = map[string]map[string]string{"key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"}, "token": {"type": "http", "scheme": "bearer"}}
	for t, name := range components {
		if d.Components.Schemas[name], err = schemaOf(t); err != nil {
			return d, err
		}
	}
	for _, r := range routes {
		if d.Paths[r.path] == nil {
			d.Paths[r.path] = map[string]operation{}
		}
		if d.Paths[r.path][strings.ToLower(r.method)], err = operationOf(r, contracts[r.pattern()]); err != nil {
			return d, err
		}
	}
	return d, nil
}

func operationOf(r route, c contract) (operation, error) {
	words := strings.FieldsFunc(r.path, func(c rune) bool { return !(c >= 'a' && c <= 'z') })
	o := operation{ID: strings.ToLower(r.method) + "_" + strings.Join(words, "_"), Summary: r.about, Tags: []string{groupOf(r)}, Responses: map[string]content{}}
	for _, m := range inPath.FindAllStringSubmatch(r.path, -1) {
		o.Parameters = append(o.Parameters, parameter{m[1], "path", true, &jsonschema.Schema{Type: "string"}})
	}
	for _, name := range c.query {
		o.Parameters = append(o.Parameters, parameter{name, "query", false, &jsonschema.Schema{Type: "string"}})
	}
	if c.open {
		o.Security = &[]map[string][]string{} // none
	}
	body, err := mediaOf(c.body)
	if err != nil {
		return o, err
	}
	if body != nil {
		o.Body = &content{Content: map[string]media{"application/json": *body}}
	}
	good := content{Description: r.about}
	switch answer, err := mediaOf(c.answer); {
	case err != nil:
		return o, err
	case answer != nil:
		good.Content = map[string]media{"application/json": *answer}
	case c.stream:
		good.Content = map[string]media{"text/event-stream": {&jsonschema.Schema{Type: "string"}}}
	case c.text != "":
		good.Content = map[string]media{c.text: {&jsonschema.Schema{Type: "string"}}}
	}
	o.Responses[itoa(cmp.Or(c.status, http.StatusOK))] = good
	refused, err := mediaOf(of[refusal]())
	o.Responses["default"] = content{Description: "The request is refused", Content: map[string]media{"application/json": *refused}}
	return o, err
}

// mediaOf is what has a type, nil for none.
func mediaOf(t reflect.Type) (*media, error) {
	if t == nil {
		return nil, nil //nolint:nilnil // no type has no media, which is no error
	}
	if name, ok := components[t]; ok {
		return &media{&jsonschema.Schema{Ref: schemas + name}}, nil
	}
	s, err := schemaOf(t)
	return &media{s}, err
}

// groupOf is the part of the protocol that a path belongs to.
func groupOf(r route) string {
	switch {
	case contracts[r.pattern()].open:
		return "server"
	case strings.Contains(r.path, "/crons"):
		return "crons"
	case strings.Contains(r.path, "/runs") || strings.HasSuffix(r.path, "/commands") || strings.Contains(r.path, "/stream"):
		return "runs"
	}
	return strings.Split(r.path, "/")[1]
}

// once is the description of a server, which is made when it is first asked for.
type once struct {
	made sync.Once
	all  described
	err  error
}

func (s meta) described() described {
	s.description.made.Do(func() {
		s.description.all, s.description.err = describe(s.Server.routes())
		if s.cfg.Authenticate != nil {
			s.description.all.Security = []map[string][]string{{"key": {}}, {"token": {}}}
		}
	})
	if err := s.description.err; err != nil {
		s.log.Errorw("the server's description was not made", "error", err)
	}
	return s.description.all
}

// docs are the parts of the documentation page.
type (
	docsOut struct {
		Who    string
		Groups []docsGroup
	}
	docsGroup struct {
		Name  string
		Paths []docsPath
	}
	docsPath struct {
		Method, Path, About, Body, Answer, Status string
		Query                                     []string
		Stream                                    bool
	}
)

func (s meta) page() docsOut {
	d := s.described()
	out := docsOut{Who: "Nobody is asked who they are."}
	if s.cfg.Authenticate != nil {
		out.Who = "Requests carry a key as X-Api-Key, or a token as Authorization: Bearer."
	}
	groups := map[string][]docsPath{}
	for _, r := range s.Server.routes() {
		c := contracts[r.pattern()]
		p := docsPath{Method: r.method, Path: r.path, About: r.about, Query: c.query, Stream: c.stream, Status: itoa(cmp.Or(c.status, http.StatusOK))}
		p.Body, p.Answer = shownType(d, c.body), shownType(d, c.answer)
		groups[groupOf(r)] = append(groups[groupOf(r)], p)
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		out.Groups = append(out.Groups, docsGroup{name, groups[name]})
	}
	return out
}

// shownType is the schema of a type as people read it, "" for none.
func shownType(d described, t reflect.Type) string {
	if t == nil {
		return ""
	}
	schema := d.Components.Schemas[components[t]]
	if schema == nil {
		m, err := mediaOf(t)
		if err != nil {
			return ""
		}
		schema = m.Schema
	}
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return ""
	}
	return string(text)
}
