package segment

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"superstep.dev/graphadapter/pregel"
)

// throughJSON is a delivery's outcome as encoding/json writes and reads it.
func throughJSON(d Delivery) (read Delivery, err error) {
	read = Delivery{Key: d.Key, Digest: d.Digest, Took: d.Took}
	text, err := json.Marshal(d.Outcome)
	if err == nil {
		err = json.Unmarshal(text, &read.Outcome)
	}
	return read, err
}

// TestADeliveryIsReadAsJSONWouldBe, and as its round trip said: a suspended run has its values from encoding/json, and the
// digests of its tasks must be those of the segment.
func TestADeliveryIsReadAsJSONWouldBe(t *testing.T) {
	compared := 0
	var c coder // used again, as a segment does
	rapid.Check(t, func(t *rapid.T) {
		d := drawAnyDelivery(t)
		before, wrong := throughJSON(d)
		read, frame, err := c.roundTrip(d)
		if (err == nil) != (wrong == nil) {
			t.Fatalf("%+v: error %v, of encoding/json %v", d, err, wrong)
		}
		if err != nil {
			return
		}
		compared++
		if !reflect.DeepEqual(read, before) {
			t.Fatalf("it is read as\n%#v\nwant\n%#v", read, before)
		}
		all, err := decodeBlocks(appendBlock(nil, trailerOf(read), slices.Concat(frame, frame)), 1, maxRecordText)
		if err != nil || len(all) != 2 {
			t.Fatalf("two of it are read as %d: %v", len(all), err)
		}
		all[1].Digest = read.Digest // of one without a key the trailer, which is not empty
		if !reflect.DeepEqual(all[0], read) || !reflect.DeepEqual(all[1], read) {
			t.Fatalf("in a block it is read as\n%#v\nwant\n%#v", all, read)
		}
		if _, again, err := c.roundTrip(read); err != nil || !bytes.Equal(again, bytes.Clone(frame)) {
			t.Fatalf("read and written again it has other bytes (%v)", err)
		}
		if after, _ := throughJSON(d); !reflect.DeepEqual(before, after) {
			t.Fatalf("what it was made of became\n%#v\nfrom\n%#v", after, before)
		}
	})
	if compared == 0 {
		t.Error("nothing was read")
	}
}

// trailerOf is the digest trailer of a block that has the delivery.
func trailerOf(d Delivery) string {
	if d.Key == "" {
		return "0a1b2c3d"
	}
	return ""
}

// TestWhatIsReadIsACopy: a node may go on changing what it returned, and the coder its memory.
func TestWhatIsReadIsACopy(t *testing.T) {
	var c coder
	d := Delivery{Key: "1/a", Digest: "0a1b2c3d", Outcome: pregel.Outcome{Command: pregel.Command{
		Update: []pregel.Write{{Channel: "a", Value: pregel.Value(`{ "a>b": 1 }`)}}}, Routes: []pregel.Target{{Node: "b", Arg: pregel.Value("17")}}}}
	read, _, err := c.roundTrip(d)
	if err != nil {
		t.Fatal(err)
	}
	d.Outcome.Update[0].Value[2], d.Outcome.Routes[0].Arg[0] = 'x', '9'
	if _, _, err := c.roundTrip(Delivery{Key: "2/b", Digest: "ffffffff"}); err != nil {
		t.Fatal(err)
	}
	if u, r := read.Outcome.Update[0], read.Outcome.Routes[0]; string(u.Value) != "{\"a\\u003eb\":1}" || string(r.Arg) != "17" || read.Key != "1/a" {
		t.Errorf("it became %s, %s, %s", u.Value, r.Arg, read.Key)
	}
}

// TestNoFieldIsLost: each that an outcome has, or will have.
func TestNoFieldIsLost(t *testing.T) {
	var c coder
	same := func(what string, o pregel.Outcome) {
		want, wrong := throughJSON(Delivery{Key: "1/a", Outcome: o})
		if read, _, err := c.roundTrip(Delivery{Key: "1/a", Outcome: o}); err != nil || wrong != nil || !reflect.DeepEqual(read, want) {
			t.Errorf("%s is read as %+v, want %+v (%v, %v)", what, read.Outcome, want.Outcome, err, wrong)
		}
	}
	all := reflect.TypeFor[pregel.Outcome]()
	for _, field := range reflect.VisibleFields(all) {
		if field.Anonymous {
			continue
		}
		var o pregel.Outcome
		setAny(reflect.ValueOf(&o).Elem().FieldByIndex(field.Index))
		same(field.Name, o)
	}
	same("a run timeout", pregel.Outcome{Routes: []pregel.Target{{Timeouts: pregel.Timeouts{RunTimeout: 1}}}})
	same("an idle timeout", pregel.Outcome{Routes: []pregel.Target{{Timeouts: pregel.Timeouts{IdleTimeout: 1 << 40}}}})
	fields := map[reflect.Type]int{reflect.TypeFor[Delivery](): 4, reflect.TypeFor[pregel.Write](): 3,
		reflect.TypeFor[pregel.Target](): 4, reflect.TypeFor[pregel.Timeouts](): 2}
	for of, known := range fields {
		if of.NumField() != known {
			t.Errorf("%v has %d fields, of which a frame has %d: write and read the new one", of, of.NumField(), known)
		}
	}
}

// smallRecord is a record of several blocks, one of which is packed, with and without keys.
func smallRecord(t *testing.T) (record []byte, blocks []int, all []Delivery) {
	t.Helper()
	var c coder
	for i := range 3 {
		var frames []byte
		for j := range 3 {
			d := Delivery{Outcome: pregel.Outcome{Command: pregel.Command{Update: []pregel.Write{{Channel: "turn", Value: pregel.Value(fmt.Sprint(3*i + j))}}}}}
			if i == 1 && j == 0 {
				d.Outcome.Update[0].Value = pregel.Value(`"` + strings.Repeat("0", minPacked) + `"`)
			}
			if j == 1 {
				d.Key, d.Digest, d.Outcome.Drain = fmt.Sprintf("%d/n", i), "01234567", "soon"
			}
			_, frame, err := c.roundTrip(d)
			if err != nil {
				t.Fatal(err)
			}
			if frames = append(frames, frame...); j == 2 {
				d.Digest = "89abcdef"
			}
			all = append(all, d)
		}
		record = appendBlock(record, "89abcdef", frames)
		blocks = append(blocks, len(record))
	}
	if read, err := DecodeRecord(record); err != nil || !reflect.DeepEqual(read, all) {
		t.Fatalf("it is read as %+v, want %+v (%v)", read, all, err)
	}
	return record, blocks, all
}

// TestARecordThatWasCutOff is an error, or between two blocks a shorter record.
func TestARecordThatWasCutOff(t *testing.T) {
	record, blocks, all := smallRecord(t)
	for n := range record {
		read, err := DecodeRecord(record[:n])
		whole := 3 * (slices.Index(blocks, n) + 1)
		if n > 0 && (err == nil) != (whole > 0) || err == nil && !(len(read) == whole && (whole == 0 || reflect.DeepEqual(read, all[:whole]))) {
			t.Errorf("cut off after %d bytes it is read as %+v (%v)", n, read, err)
		}
	}
}

// TestARecordThatWasChanged at any byte, in any way, or behind its end, is an error.
func TestARecordThatWasChanged(t *testing.T) {
	record, _, _ := smallRecord(t)
	for at := range record {
		for change := 1; change < 256; change++ {
			changed := bytes.Clone(record)
			changed[at] ^= byte(change)
			if read, err := DecodeRecord(changed); err == nil {
				t.Errorf("with byte %d changed by %x it is read as %+v", at, change, read)
			}
		}
	}
	for last := range 256 {
		if read, err := DecodeRecord(append(bytes.Clone(record), byte(last))); err == nil {
			t.Errorf("with a byte %x at its end it is read as %+v", last, read)
		}
	}
}

// TestOtherFramesAreNone: blocks whose checksum is right and whose text is not a list of frames.
func TestOtherFramesAreNone(t *testing.T) {
	var c coder
	_, frame, err := c.roundTrip(Delivery{Key: "1/a", Digest: "0", Outcome: pregel.Outcome{Drain: "soon", Routes: []pregel.Target{{Node: "b"}}}})
	if err != nil {
		t.Fatal(err)
	}
	frame = bytes.Clone(frame)
	for n := 1; n < len(frame); n++ {
		if read, err := decodeBlocks(appendBlock(nil, "", frame[:n]), 1, maxRecordText); err == nil {
			t.Errorf("%d of %d bytes are read as %+v", n, len(frame), read)
		}
	}
	if read, err := decodeBlocks(appendBlock(nil, "0", frame), 1, maxRecordText); err == nil {
		t.Errorf("with the digest of a task that it does not have it is read as %+v", read)
	}
	if read, err := decodeBlocks(appendBlock(nil, "", []byte{0, 0, 0, 0, 0, 0, 0}), 1, maxRecordText); err == nil {
		t.Errorf("without the digest of its task it is read as %+v", read)
	}
	many := binary.AppendUvarint([]byte{1, 'k', 0, 0}, 1<<62)
	if read, err := decodeBlocks(appendBlock(nil, "", many), 1, maxRecordText); err == nil {
		t.Errorf("with more writes than bytes it is read as %+v", read)
	}
	rapid.Check(t, func(t *rapid.T) { // nothing makes it panic
		text := rapid.SliceOfN(rapid.Byte(), 1, 60).Draw(t, "text")
		_, _ = decodeBlocks(appendBlock(nil, "", text), 1, maxRecordText)
		_, _ = decodeBlocks(text, 1, maxRecordText)
		_, _ = DecodeResult(text)
	})
}

// TestABombIsRefused: few bytes that become many, in one block or in several.
func TestABombIsRefused(t *testing.T) {
	var c coder
	value := pregel.Value(`"` + strings.Repeat("0", maxOutcomeBytes) + `"`)
	_, frame, err := c.roundTrip(Delivery{Key: "1/a", Outcome: pregel.Outcome{Command: pregel.Command{Update: []pregel.Write{{Value: value}}}}})
	if err != nil {
		t.Fatal(err)
	}
	one := appendBlock(nil, "", frame)
	if all, err := decodeBlocks(one, 1, maxRecordText); err != nil || len(all) != 1 {
		t.Errorf("one large outcome: %d, %v", len(all), err)
	}
	if _, err := decodeBlocks(bytes.Repeat(one, 3), 1, maxRecordText); err == nil {
		t.Error("three blocks were unpacked to more than their bound")
	}
	if _, err := decodeBlocks(appendBlock(nil, "", make([]byte, 40*maxRecordText)), 1, maxRecordText); err == nil {
		t.Error("a block was unpacked to more than its bound")
	}
	if _, err := decodeBlocks(appendBlock(nil, "", frame[:minPacked/2]), 1, minPacked/2); err == nil || !strings.Contains(err.Error(), "more than 1024 bytes") {
		t.Errorf("a block that is not packed has more than its bound: %v", err)
	}
	var cut bytes.Buffer // a block that does not end
	w, err := flate.NewWriter(&cut, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(append([]byte{0}, frame[:2000]...)); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := decodeBlocks(putBlock(nil, true, cut.Bytes()), 1, maxRecordText); err == nil || !strings.Contains(err.Error(), "EOF") {
		t.Errorf("a block that does not end was read: %v", err)
	}
}

// drawAnyDelivery draws one of any kind, or one of the everyday kind: of the others few can be read.
func drawAnyDelivery(t *rapid.T) Delivery {
	if rapid.Bool().Draw(t, "any") {
		return drawDelivery(t)
	}
	write := pregel.Write{Channel: rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "channel"),
		Value: pregel.Value(fmt.Sprint(rapid.Int().Draw(t, "value")))}
	return Delivery{Key: fmt.Sprintf("%d/node", rapid.IntRange(0, 99).Draw(t, "step")), Digest: "0a1b2c3d",
		Outcome: pregel.Outcome{Command: pregel.Command{Update: []pregel.Write{write}}}, Took: drawTook(t)}
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
	case reflect.Slice:
		if field.Type().Elem().Kind() == reflect.Uint8 {
			field.SetBytes([]byte("1"))
			return
		}
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
	return rapid.OneOf(rapid.StringMatching(`[a-z0-9/:|!_~ -]{0,12}`), rapid.StringMatching(`[a-z]*["\\<>&\x7fü\x{2028}\n]?`)).Draw(t, "name")
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
