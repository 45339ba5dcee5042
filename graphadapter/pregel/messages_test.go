package pregel

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestMessagesAreWhatTheirTextSays: whatever has been read of a list that grows, an update of any of its versions comes to what the
// same update of its plain text comes to, byte for byte, and to what writing the list anew comes to.
func TestMessagesAreWhatTheirTextSays(t *testing.T) {
	message := rapid.Custom(func(t *rapid.T) string {
		id := rapid.SampledFrom([]string{"", `"id":"",`, `"id":null,`, `"id":"a",`, `"ID":"b",`, `"id":"c",`, `"id":"d",`, `"id":"e",`}).Draw(t, "id")
		role := rapid.SampledFrom([]string{"user", "user", "user", "assistant", "remove"}).Draw(t, "role")
		if rapid.IntRange(0, 20).Draw(t, "all") == 0 {
			id, role = `"id":"__remove_all__",`, "remove"
		}
		content := strings.Repeat(rapid.SampledFrom([]string{"x", `\"]`, "<", "{,"}).Draw(t, "content"), rapid.IntRange(0, 60).Draw(t, "times"))
		return fmt.Sprintf(`{%s"role":%q,"content":"%s"}`, id, role, content)
	})
	update := rapid.Custom(func(t *rapid.T) Value {
		all := rapid.SliceOfN(message, 0, 3).Draw(t, "messages")
		if len(all) == 1 && rapid.Bool().Draw(t, "alone") {
			return Value(all[0])
		}
		return Value("[" + strings.Join(all, ",") + "]")
	})
	rapid.Check(t, func(t *rapid.T) {
		versions := []Held{Hold(emptyList)}
		for range rapid.IntRange(1, 40).Draw(t, "updates") {
			from := versions[len(versions)-1]
			if rapid.IntRange(0, 4).Draw(t, "older") == 0 {
				from = rapid.SampledFrom(versions).Draw(t, "from")
			}
			u := update.Draw(t, "update")
			was := string(from.Value())
			got, err := reduceMessages(from, []Value{u})
			plain, plainErr := reduceMessages(Hold(Value(was)), []Value{u})
			anew, anewErr := mergeMessages(Value(was), u)
			if (err == nil) != (plainErr == nil) || (err == nil) != (anewErr == nil) {
				t.Fatalf("%s with %s: %v, of its text %v, anew %v", was, u, err, plainErr, anewErr)
			}
			if string(from.Value()) != was {
				t.Fatal("the list that it was made of is another one")
			}
			if err != nil {
				continue
			}
			if string(got.Value()) != string(plain.Value()) {
				t.Fatalf("%s with %s: %s, of its text %s", was, u, got, plain)
			}
			var a, b any
			if json.Unmarshal(got.Value(), &a) != nil || json.Unmarshal(anew.Value(), &b) != nil || fmt.Sprint(a) != fmt.Sprint(b) {
				t.Fatalf("%s with %s: %s, anew %s", was, u, got, anew)
			}
			versions = append(versions, got)
		}
	})
}

// BenchmarkMessages adds a message to a conversation of 3,000.
func BenchmarkMessages(b *testing.B) {
	list := Hold(emptyList)
	add := func(list Held, i int) Held {
		next, err := reduceMessages(list, []Value{Value(fmt.Sprintf(`[{"id":"m%d","role":"user","content":%q}]`, i, strings.Repeat("word ", 40)))})
		if err != nil {
			b.Fatal(err)
		}
		return next
	}
	for i := range 3000 {
		list = add(list, i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		list = add(list, 3000+i)
	}
}
