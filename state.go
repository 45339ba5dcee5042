package superstep

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsonfit"
)

// schema is a struct of channels, taken apart once.
type schema struct {
	typ    reflect.Type
	fields []schemaField
	byName map[string]int
	// problems are what is wrong with the type, each a sentence that names the field.
	problems []string
}

// schemaField is one channel of a schema.
type schemaField struct {
	declaration
	name string
	// index leads to the field through embedded structs; path is the same for people.
	index []int
	path  string
}

var (
	schemas     sync.Map // reflect.Type → *schema
	channelType = reflect.TypeFor[channel]()
)

// schemaOf takes a state type apart. The result is shared: it is read-only.
func schemaOf(t reflect.Type) *schema {
	if known, ok := schemas.Load(t); ok {
		return known.(*schema)
	}
	s := &schema{typ: t, byName: map[string]int{}}
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(channelType) {
		s.problem("%s is not a struct whose fields are channels, such as superstep.Value[int64]", jsonfit.TypeName(t))
	} else {
		s.addFields(t, nil, jsonfit.TypeName(t))
	}
	known, _ := schemas.LoadOrStore(t, s)
	return known.(*schema)
}

// schemaFor is schemaOf for a type that is known.
func schemaFor[S any]() *schema { return schemaOf(reflect.TypeFor[S]()) }

func (s *schema) problem(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

func (s *schema) addFields(t reflect.Type, index []int, path string) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(index[:len(index):len(index)], i)
		if f.Tag.Get("json") == "-" {
			continue
		}
		isChannel := reflect.PointerTo(f.Type).Implements(channelType)
		if f.Anonymous && !isChannel && tagName(f) == "" {
			s.addEmbedded(f, at, path)
			continue
		}
		if f.IsExported() {
			s.addField(f, at, path+"."+f.Name, isChannel)
		}
	}
}

// addEmbedded flattens an embedded struct, as encoding/json does.
func (s *schema) addEmbedded(f reflect.StructField, index []int, path string) {
	switch {
	case f.Type.Kind() == reflect.Struct:
		s.addFields(f.Type, index, path+"."+f.Name)
	case f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct:
		s.problem("%s.%s is an embedded pointer: embed %s itself, a pointer would be shared between copies of the state",
			path, f.Name, jsonfit.TypeName(f.Type.Elem()))
	case f.IsExported():
		s.addField(f, index, path+"."+f.Name, false)
	}
}

func (s *schema) addField(f reflect.StructField, index []int, path string, isChannel bool) {
	if !isChannel {
		s.plainField(f, path)
		return
	}
	name := tagName(f)
	if name == "" {
		name = f.Name
	}
	options, err := fieldOptionsOf(f)
	if err != nil {
		s.problem("%s: %v", path, err)
		return
	}
	if problem := checkChannelName(name); problem != "" {
		s.problem("%s: %s", path, problem)
		return
	}
	if other, twice := s.byName[name]; twice {
		s.problem("%s and %s both have the channel name %q: give one another json tag", s.fields[other].path, path, name)
		return
	}
	d, err := reflect.New(f.Type).Interface().(channel).declare(name, options)
	if err != nil {
		s.problem("%s: %v", path, err)
		return
	}
	s.byName[name] = len(s.fields)
	s.fields = append(s.fields, schemaField{declaration: d, name: name, index: index, path: path})
}

// plainField names the channel that the field probably should have been.
func (s *schema) plainField(f reflect.StructField, path string) {
	t := f.Type
	if t.Kind() == reflect.Pointer && reflect.PointerTo(t.Elem()).Implements(channelType) {
		s.problem("%s is a pointer to a channel: declare it as %s", path, jsonfit.TypeName(t.Elem()))
		return
	}
	hint := fmt.Sprintf("superstep.Value[%s]", jsonfit.TypeName(t))
	if t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 {
		hint += fmt.Sprintf(", or superstep.List[%s] if nodes append to it", jsonfit.TypeName(t.Elem()))
	}
	s.problem("%s is a plain %s: declare it as %s", path, jsonfit.TypeName(t), hint)
}

func tagName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func fieldOptionsOf(f reflect.StructField) (o fieldOptions, err error) {
	tag, ok := f.Tag.Lookup("superstep")
	if !ok {
		return o, nil
	}
	for word := range strings.SplitSeq(tag, ",") {
		switch word {
		case "accumulate":
			o.accumulate = true
		case "unguarded":
			o.unguarded = true
		default:
			return o, fmt.Errorf("the tag superstep:%q has the unknown word %q: there are accumulate and unguarded",
				tag, word)
		}
	}
	return o, nil
}

// checkChannelName says what is wrong with a channel's name. LangGraph's own names all begin with two underscores.
func checkChannelName(name string) string {
	const most = 100
	switch {
	case len(name) > most:
		return fmt.Sprintf("the channel name %q has more than %d bytes", name, most)
	case strings.HasPrefix(name, "__"), strings.HasPrefix(name, "branch:to:"), strings.HasPrefix(name, "join:"):
		return fmt.Sprintf("the channel name %q is reserved", name)
	}
	return ""
}

// names returns the schema's channel names in field order, never nil.
func (s *schema) names() []string {
	out := make([]string, len(s.fields))
	for i, f := range s.fields {
		out[i] = f.name
	}
	return out
}

// channelAt returns a field of an addressable state struct.
func (f *schemaField) channelAt(state reflect.Value) channel {
	return state.FieldByIndex(f.index).Addr().Interface().(channel)
}

// bind fills the struct that state points to with what a task reads.
func (s *schema) bind(state any, sc *scope, values map[string]pregel.Held) {
	v := reflect.ValueOf(state).Elem()
	for i := range s.fields {
		f := &s.fields[i]
		at := f.channelAt(v)
		if raw := values[f.name]; !raw.IsNone() {
			at.bind(sc, f.name, raw)
		} else if m, ok := at.(*Messages); ok {
			m.within(sc)
		}
	}
}

// load decodes every field of a bound struct; what does not decode is reported to the struct's scope.
func (s *schema) load(state any) {
	v := reflect.ValueOf(state).Elem()
	for i := range s.fields {
		s.fields[i].channelAt(v).load()
	}
}

// collect returns what was written to the struct that state points to: by field, and within a field in call order.
func (s *schema) collect(state any, sc *scope) ([]pregel.Write, error) {
	var out []pregel.Write
	v := reflect.ValueOf(state).Elem()
	for i := range s.fields {
		f := &s.fields[i]
		writes, err := f.writes(v, sc)
		if err != nil {
			return nil, &StateError{Graph: sc.graph, Node: sc.node, Field: f.name, Type: jsonfit.TypeName(f.value),
				Write: true, Cause: err}
		}
		for _, w := range writes {
			w.Channel = f.name
			out = append(out, w)
		}
	}
	return out, nil
}

// writes returns what was written to a field, by the task of sc.
func (f *schemaField) writes(state reflect.Value, sc *scope) ([]pregel.Write, error) {
	at := f.channelAt(state)
	if m, ok := at.(*Messages); ok {
		m.name(sc.messageID)
	}
	return at.written()
}

// object returns the struct's fields that have a value as a JSON object, in field order: a state as plain data, for a
// Send's argument.
func (s *schema) object(state any) (pregel.Value, error) {
	v := reflect.ValueOf(state).Elem()
	out := pregel.Value("{")
	for i := range s.fields {
		f := &s.fields[i]
		c := f.channelAt(v)
		if c.IsZero() {
			continue
		}
		raw, err := c.encode()
		if err != nil {
			return nil, &StateError{Field: f.name, Type: jsonfit.TypeName(f.value), Write: true, Cause: err}
		}
		out = jsonfit.AppendMember(out, f.name, raw)
	}
	return append(out, '}'), nil
}

// isState reports whether t is a struct of channels, even one with mistakes in it: at least one field is a channel.
func isState(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && len(schemaOf(t).fields) > 0
}
