package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"superstep.dev"
)

type maybeState struct {
	Log superstep.List[string] `json:"log"`
}

// maybe asks for a word, or none, and says in which context it was asked and goes on.
func maybe() superstep.Runnable {
	g := superstep.NewStateGraph[maybeState]("maybe")
	g.AddNode("ask", func(ctx context.Context, s maybeState) (maybeState, error) {
		word, err := superstep.Interrupt[*string](ctx, "which word?")
		if err != nil {
			return s, err
		}
		said := "none"
		if word != nil {
			said = *word
		}
		s.Log.Append("word " + said)
		return s, nil
	})
	g.AddNode("tell", func(ctx context.Context, s maybeState) (maybeState, error) {
		who, err := superstep.RunContext[caller](ctx)
		if err != nil {
			s.Log.Append("no context")
			return s, nil
		}
		s.Log.Append("tone " + who.Tone)
		return s, nil
	})
	chain(g, "ask", "tell")
	return g.MustCompile(superstep.WithContextSchema[caller]())
}

// A refused answer leaves the question open, and its thread where inboxes look for it.
func TestARefusedAnswerLeavesTheThreadAsking(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	answers := func(resume any) map[string]any {
		var out map[string]any
		require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "maybe", "command": object{"resume": resume}}, &out))
		return out
	}
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "maybe", "input": object{}}, nil))
	asking := func() {
		status, asks := w.asked(id)
		require.Equal(t, "interrupted", status)
		require.Equal(t, []any{"which word?"}, asks)
	}
	asking()
	require.Contains(t, answers(7), "__error__", "a number is no word")
	asking()
	require.Equal(t, []string{"error", "success"}, w.statuses(id), "the run has failed, the thread asks")
	require.Contains(t, answers(object{}), "__interrupt__", "an empty object answers nothing")
	asking()
	require.Equal(t, []any{"word none", "no context"}, answers(nil)["log"], "null is an answer where the question takes it")
}

// What goes on with a run has its context, unless it brings one of its own; none is none.
func TestAnAnswerHasTheContextOfItsRun(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		given, brought any
		wanted         string
	}{
		{object{"tone": "casual"}, nil, "tone casual"}, {object{"tone": "casual"}, object{"tone": "formal"}, "tone formal"},
		{nil, nil, "no context"}, {nil, object{"tone": "formal"}, "tone formal"},
	} {
		id, begin, answer := w.thread(), object{"assistant_id": "maybe", "input": object{}}, object{"assistant_id": "maybe", "command": object{"resume": "w"}}
		if c.given != nil {
			begin["context"] = c.given
		}
		if c.brought != nil {
			answer["context"] = c.brought
		}
		require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", begin, nil))
		require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", answer, nil))
		require.Equal(t, []string{"word w", c.wanted}, w.log(id), "%v", c)
	}
}

// What not every program reads as JSON is refused, and nothing is made; a refused state leaves no thread either; a body that is too large
// is refused so that a client that sends all of it first sees why.
func TestBodiesThatCannotBeKept(t *testing.T) {
	w := newWorld(t)
	post := func(path, body string) (int, string) {
		resp, err := http.DefaultClient.Do(w.request("POST", path, strings.NewReader(body)))
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(text)
	}
	id := w.thread()
	for _, bad := range []string{"\"\xff\"", `"\ud800"`, `1e999`} {
		status, _ := post("/threads", `{"metadata": {"a": `+bad+`}}`)
		require.Equal(t, 422, status, "%q", bad)
		status, _ = post("/threads/"+id+"/runs", `{"assistant_id": "steps", "input": {"note": `+bad+`}}`)
		require.Equal(t, 422, status, "%q", bad)
	}
	status, _ := post("/threads/"+id+"/runs", `{"assistant_id": "steps", "input": {"note": "`+strings.Repeat("x", 1<<20)+`"}}`)
	require.Equal(t, 413, status, "a run that could only fail is refused")
	status, _ = post("/threads/"+id+"/runs", `{"assistant_id": "steps", "command": {"resume": "`+strings.Repeat("x", 300<<10)+`"}}`)
	require.Equal(t, 413, status)
	require.Empty(t, w.statuses(id))
	const made = "11111111-1111-4111-8111-111111111111"
	status, text := post("/threads", `{"thread_id": "`+made+`", "metadata": {"graph_id": "steps"}, "supersteps": [{"updates": [{"values": {"note": 7}, "as_node": "__start__"}]}]}`)
	require.NotEqual(t, 200, status, text)
	require.Equal(t, 404, w.ask("GET", "/threads/"+made, nil, nil))

	conn, err := net.Dial("tcp", strings.TrimPrefix(w.base, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	large := bytes.Repeat([]byte("x"), 9<<20)
	_, err = fmt.Fprintf(conn, "POST /threads HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", len(large))
	require.NoError(t, err)
	_, err = conn.Write(large)
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Contains(t, string(answer), "413 Request Entity Too Large")

	resp, err := http.DefaultClient.Do(w.request("PUT", "/threads", nil))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 405, resp.StatusCode)
	require.Equal(t, "POST", resp.Header.Get("Allow"))
	var run map[string]json.RawMessage
	require.Equal(t, 200, w.ask("GET", "/threads/"+id, nil, &run))
	require.Regexp(t, `^"[0-9T:-]+\.[0-9]{6}\+00:00"$`, string(run["created_at"]))
}

// No key is good while the file of keys cannot be read, and all are again when it can.
func TestKeysThatCannotBeRead(t *testing.T) {
	w, file, _, _, _ := keyed(t)
	require.Equal(t, 200, w.ask("POST", "/threads", object{}, nil))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.Remove(file))
	w.eventually("no key is good", func() bool { return w.ask("POST", "/threads", object{}, nil) == 503 })
	require.NoError(t, os.WriteFile(file, append([]byte("no key\n"), text...), 0o600))
	w.eventually("it is still none", func() bool { return w.ask("POST", "/threads", object{}, nil) == 503 })
	require.NoError(t, os.WriteFile(file, text, 0o600))
	w.eventually("the key is good", func() bool { return w.ask("POST", "/threads", object{}, nil) == 200 })
}
