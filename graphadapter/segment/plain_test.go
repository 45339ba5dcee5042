package segment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"superstep.dev/graphadapter/pregel"
)

// TestAPlainDeliveryIsAsStored: whatever is taken for plain has the text, and is read, as encoding/json does it.
func TestAPlainDeliveryIsAsStored(t *testing.T) {
	compared := 0
	defer func() {
		if compared == 0 {
			t.Error("nothing was taken for plain")
		}
	}()
	rapid.Check(t, func(t *rapid.T) {
		d := drawAnyDelivery(t)
		before, err := json.Marshal(d)
		read, encoded, plain := asPlain(d, nil)
		if !plain {
			return
		}
		compared++
		if err != nil {
			t.Fatalf("encoding/json refuses it: %v", err)
		}
		var stored storedDelivery
		text, err := json.Marshal(d)
		err = errors.Join(err, json.Unmarshal(text, &stored))
		if err != nil || !bytes.Equal(encoded, text) || !reflect.DeepEqual(read, Delivery(stored)) {
			t.Fatalf("as text\n%s\nwant\n%s\nread as\n%#v\nwant\n%#v (error %v)", encoded, text, read, stored, err)
		}
		if after, _ := json.Marshal(d); !bytes.Equal(before, after) {
			t.Fatalf("what it was made of became\n%s\nfrom\n%s", after, before)
		}
	})
}

// TestADeliveryIsReadAsStored: whatever is read as plain is read as encoding/json does it.
func TestADeliveryIsReadAsStored(t *testing.T) {
	compared := 0
	defer func() {
		if compared == 0 {
			t.Error("nothing was read as plain")
		}
	}()
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(drawAnyDelivery(t))
		if err != nil {
			return
		}
		text = drawChange(t, text)
		if !json.Valid(text) {
			return
		}
		read, plain := readPlain(text)
		if !plain {
			return
		}
		compared++
		var stored storedDelivery
		if err := json.Unmarshal(text, &stored); err != nil || !reflect.DeepEqual(read, Delivery(stored)) {
			t.Fatalf("%s\nis read as\n%#v\nwant\n%#v (error %v)", text, read, stored, err)
		}
	})
}

// drawAnyDelivery draws one of any kind, or one of the everyday kind: of the others few are plain.
func drawAnyDelivery(t *rapid.T) Delivery {
	if rapid.Bool().Draw(t, "any") {
		return drawDelivery(t)
	}
	write := pregel.Write{Channel: rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "channel"),
		Value: pregel.Value(fmt.Sprint(rapid.Int().Draw(t, "value")))}
	return Delivery{Key: fmt.Sprintf("%d/node", rapid.IntRange(0, 99).Draw(t, "step")), Digest: "0a1b2c3d",
		Outcome: pregel.Outcome{Command: pregel.Command{Update: []pregel.Write{write}}}, Took: drawTook(t)}
}

// drawChange puts something into a text, mostly nothing.
func drawChange(t *rapid.T, text []byte) []byte {
	change := rapid.SampledFrom([]string{"", "", "", " ", "null", ",", `"cached":true,`, `,"overwrite":false`, `,"value":2`, "0", "[]",
		`{"channel":"x","value":7},`, `,"run_timeout_ms":5`}).Draw(t, "change")
	at := rapid.IntRange(0, len(text)).Draw(t, "at")
	return slices.Concat(text[:at], []byte(change), text[at:])
}

// TestMostDeliveriesArePlain: the names and values of everyday graphs.
func TestMostDeliveriesArePlain(t *testing.T) {
	d := Delivery{Key: "12/plan_route:3", Digest: "0a1b2c3d", Outcome: pregel.Outcome{
		Command: pregel.Command{
			Update: []pregel.Write{{Channel: "turn", Value: pregel.Value(`-1.5e3`)}, {Channel: "notes", Overwrite: true,
				Value: pregel.Value(`[{"text":"a \"b\" \\ ü\u2028","n":null},true]`)}},
			Goto: []pregel.Target{{Node: "pay", Send: true, Arg: pregel.Value(`{"order":"o-7"}`)}, {Node: pregel.End}},
		},
		Routes: []pregel.Target{{Node: "again"}},
	}, Took: 31}
	read, encoded, plain := asPlain(d, nil)
	if !plain {
		t.Fatal("it is not taken for plain")
	}
	if text, err := json.Marshal(read); err != nil || !bytes.Equal(encoded, text) {
		t.Errorf("as text\n%s\nwant\n%s (error %v)", encoded, text, err)
	}
	if again, plain := readPlain(encoded); !plain || !reflect.DeepEqual(again, read) {
		t.Errorf("it is read as\n%#v\nwant\n%#v", again, read)
	}
	d.Outcome.Update[0].Value[0] = '7' // its node goes on with what it returned
	if string(read.Outcome.Update[0].Value) != `-1.5e3` {
		t.Errorf("the value that was read became %s", read.Outcome.Update[0].Value)
	}
}

// TestNoOtherFieldIsPlain: a field that an outcome has, or will have, is never left out.
func TestNoOtherFieldIsPlain(t *testing.T) {
	known := map[string]bool{"Update": true, "Goto": true, "Routes": true}
	all := reflect.TypeFor[pregel.Outcome]()
	for _, field := range reflect.VisibleFields(all) {
		if field.Anonymous || known[field.Name] {
			continue
		}
		var o pregel.Outcome
		setAny(reflect.ValueOf(&o).Elem().FieldByIndex(field.Index))
		if _, _, plain := asPlain(Delivery{Outcome: o}, nil); plain {
			t.Errorf("an outcome with %s is taken for plain: it would be lost", field.Name)
		}
	}
	for _, list := range []pregel.Outcome{
		{Routes: []pregel.Target{{Timeouts: pregel.Timeouts{RunTimeout: 1}}}},
		{Routes: []pregel.Target{{Timeouts: pregel.Timeouts{IdleTimeout: 1}}}},
	} {
		if _, _, plain := asPlain(Delivery{Outcome: list}, nil); plain {
			t.Errorf("%+v is taken for plain: it would be lost", list)
		}
	}
	fields := map[reflect.Type]int{all: 12, reflect.TypeFor[Delivery](): 4, reflect.TypeFor[pregel.Command](): 3,
		reflect.TypeFor[pregel.Write](): 3, reflect.TypeFor[pregel.Target](): 4, reflect.TypeFor[pregel.Timeouts](): 2}
	for of, known := range fields {
		if of.NumField() != known {
			t.Errorf("%v has %d fields, of which asPlain knows %d: teach it the new one, or leave it to asStored", of,
				of.NumField(), known)
		}
	}
}

// setAny gives a field some value that is not its zero.
func setAny(field reflect.Value) {
	switch field.Kind() {
	case reflect.Bool:
		field.SetBool(true)
	case reflect.String:
		field.SetString("x")
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
	case reflect.Map:
		field.Set(reflect.MakeMap(field.Type()))
	default:
		field.Set(reflect.MakeSlice(field.Type(), 1, 1))
	}
}

func drawDelivery(t *rapid.T) Delivery {
	return Delivery{Key: drawName(t), Digest: drawName(t), Outcome: pregel.Outcome{
		Command: pregel.Command{Update: rapid.Custom(drawWrites).Draw(t, "update"), Goto: drawTargets(t)},
		Routes:  drawTargets(t),
	}, Took: drawTook(t)}
}

func drawTook(t *rapid.T) int64 {
	return rapid.SampledFrom([]int64{0, 0, 1, 20, 1 << 62, -1}).Draw(t, "took")
}

func drawWrites(t *rapid.T) []pregel.Write {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) pregel.Write {
		return pregel.Write{Channel: drawName(t), Value: drawValue(t), Overwrite: rapid.Bool().Draw(t, "overwrite")}
	}), 0, 3).Draw(t, "writes")
}

func drawTargets(t *rapid.T) []pregel.Target {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) pregel.Target {
		return pregel.Target{Node: drawName(t), Send: rapid.Bool().Draw(t, "send"), Arg: drawValue(t)}
	}), 0, 3).Draw(t, "targets")
}

func drawName(t *rapid.T) string {
	return rapid.OneOf(rapid.StringMatching(`[a-z0-9/:|!_~ -]{0,12}`), rapid.StringMatching(`[a-z]*["\\<>&\x7fü\x{2028}\n]?`),
		rapid.Just("\xff")).Draw(t, "name")
}

// drawValue is a value, sometimes with what encoding changes, sometimes none at all.
func drawValue(t *rapid.T) pregel.Value {
	text := rapid.OneOf(
		rapid.StringMatching(`[0-9]|-?[1-9][0-9]{0,3}(\.[0-9]{1,2})?([eE][+-]?[0-9])?|true|null|"[a-z ]{0,5}"`),
		rapid.StringMatching(`"([a-z <>&ü\x{2028}\x{2029}\x{2030}\x{7f}]|\\["\\/nt]|\\u20[0-9]{2}){0,6}"`),
		rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"{", "}", "[", "]", `"a"`, `"\""`, ":", ",", " ", "\n", "1", "-0", "<",
			"\xff", "\"\xff\"", "null", "\\"}), 0, 8), func(parts []string) string { return strings.Join(parts, "") }),
		rapid.SampledFrom([]string{`{"a":[1,{"b":"c d"}],"e":""}`, `{"a": 1}`, `[1 ,2]`, "", "[]", "{}", ` 1`, "1\t"}),
	).Draw(t, "text")
	if text == "" && rapid.Bool().Draw(t, "none") {
		return nil
	}
	return pregel.Value(text)
}
