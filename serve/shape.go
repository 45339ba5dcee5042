package serve

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// What a field of a body says beside its type, in its tag "says": null may stand for nothing; it is always there; it is a word, which
// is not empty; it is a UUID.
const (
	tagSays    = "says"
	saysNull   = "null"
	saysAlways = "always"
	saysWord   = "word"
	saysUUID   = "uuid"
)

// fits refuses JSON that has null where a type has a field that says something, or lacks what is always there. What the type does not
// know is not looked at, and neither is what does not decode: the decoder says that.
func fits(text json.RawMessage, t reflect.Type, at string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		var members object
		if json.Unmarshal(text, &members) != nil {
			return nil
		}
		return membersFit(members, t, at)
	case reflect.Slice:
		var all []json.RawMessage
		if t == reflect.TypeFor[json.RawMessage]() || json.Unmarshal(text, &all) != nil {
			return nil
		}
		for _, one := range all {
			if string(one) == "null" {
				return refuse(http.StatusUnprocessableEntity, "%s has null, which says nothing", at)
			}
			if err := fits(one, t.Elem(), at); err != nil {
				return err
			}
		}
	}
	return nil
}

// membersFit refuses an object that does not fit a struct.
func membersFit(members object, t reflect.Type, at string) error {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			if err := membersFit(members, f.Type, at); err != nil {
				return err
			}
			continue
		}
		v, there := members[name]
		says := strings.Split(f.Tag.Get(tagSays), ",")
		path := strings.TrimPrefix(at+"."+name, ".")
		var text string
		isText := json.Unmarshal(v, &text) == nil
		switch {
		case !there && slices.Contains(says, saysAlways):
			return refuse(http.StatusUnprocessableEntity, "%s is missing", path)
		case !there || name == "":
			continue
		case string(v) == "null" && slices.Contains(says, saysNull):
			continue
		case string(v) == "null" && slices.Contains(says, saysAlways):
			return refuse(http.StatusUnprocessableEntity, "%s is null: it is needed", path)
		case string(v) == "null":
			return refuse(http.StatusUnprocessableEntity, "%s is null: leave it out", path)
		case isText && text == "" && slices.Contains(says, saysWord):
			return refuse(http.StatusUnprocessableEntity, "%s is empty: leave it out", path)
		case isText && slices.Contains(says, saysUUID) && uuid.Validate(text) != nil:
			return refuse(http.StatusUnprocessableEntity, "%s %q is no UUID", path, text)
		}
		if err := fits(v, f.Type, path); err != nil {
			return err
		}
	}
	return nil
}
