package thread_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/graphtest"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// TestLifeOnBothRuntimes runs the scripts of graphadapter/life/testdata/shared, which say what package life decides, on both
// runtimes: each has to show the same.
func TestLifeOnBothRuntimes(t *testing.T) {
	for name, on := range map[string]func(*testing.T, superstep.Runnable) superstep.Runtime{
		"memory":   func(*testing.T, superstep.Runnable) superstep.Runtime { return superstep.NewMemory() },
		"temporal": func(t *testing.T, g superstep.Runnable) superstep.Runtime { return graphtest.Temporal(t, g) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it waits for silence to be long enough
			datadriven.Walk(t, "../../graphadapter/life/testdata/shared", func(t *testing.T, path string) {
				s := &lifeScript{on: on}
				datadriven.RunTest(t, path, s.directive)
			})
		})
	}
}

// lives is the state of a graph of a script.
type lives struct {
	Log superstep.List[string] `json:"log"`
}

// lifeScript is one script on one runtime.
type lifeScript struct {
	on     func(*testing.T, superstep.Runnable) superstep.Runtime
	rt     superstep.Runtime
	graph  *superstep.Graph[lives]
	thread *superstep.Thread[lives]
	asked  map[string]thread.Question // by node
	names  *strings.Replacer          // of questions, by their nodes
	shown  int                        // entries
	waited int                        // entries, when time passed until one came
}

func (s *lifeScript) directive(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	if d.Cmd == "graph" {
		s.begin(t, d.Input)
		return ""
	}
	var err error
	var by, reason, id, name, value, mode string
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 1 {
			text := strings.ReplaceAll(a.Vals[0], "_", " ")
			*map[string]*string{"by": &by, "reason": &reason, "id": &id, "name": &name, "value": &value, "mode": &mode}[a.Key] = text
		}
	}
	ctx, who := t.Context(), superstep.AskedBy(by)
	switch d.Cmd {
	case "answer":
		err = s.answer(ctx, strings.Fields(d.Input), by)
	case "event":
		_, err = s.thread.SendEvent(ctx, name, json.RawMessage(value), who, superstep.WithRequestID(id))
	case "pause":
		err = s.thread.Pause(ctx, reason, who)
	case "unpause":
		err = s.thread.Unpause(ctx, who, superstep.WithReason(reason))
	case "cancel":
		err = s.thread.Cancel(ctx, reason, superstep.WithMode(thread.CancelMode(mode)), who)
		s.look(t)
	case "until":
		s.until(t, approval.Kind(d.CmdArgs[0].Key))
	case "goes":
		s.look(t)
	case "stands":
		return s.stands(t)
	case "audit":
		return s.audit(t)
	default:
		t.Fatalf("%q is no directive", d.Cmd)
	}
	var refused *thread.Error
	if errors.As(err, &refused) {
		return fmt.Sprintf("refused: %s\n", s.named(refused.Message))
	}
	require.NoError(t, err)
	return ""
}

// begin runs a graph whose nodes ask side by side.
func (s *lifeScript) begin(t *testing.T, text string) {
	t.Helper()
	b := superstep.NewStateGraph[lives]("lives")
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if words[1] == "calls" {
			b.AddNode(words[0], calls(b, words[0], slices.Contains(words, "final")))
		} else {
			b.AddNode(words[0], asks(t, words[1], words[2:]))
		}
		b.AddEdge(superstep.Start, words[0])
	}
	s.graph = b.MustCompile()
	s.rt = s.on(t, s.graph)
	s.thread, s.asked, s.shown, s.waited = s.graph.Thread(s.rt, graphtest.ThreadID(t)), map[string]thread.Question{}, 0, 0
	_, err := s.thread.Invoke(t.Context(), lives{})
	require.NoError(t, err)
	s.look(t)
}

// asks is a node that asks what a script says: see questionOf in package life's own test.
func asks(t *testing.T, what string, words []string) func(context.Context, lives) (lives, error) {
	t.Helper()
	a := approval.Action{Tool: "pay", Summary: "Pay", Params: json.RawMessage(`{}`), Risk: approval.RiskLow}
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		switch took, _ := time.ParseDuration(value); name {
		case "within":
			a.Within = took.Milliseconds()
		case "warn":
			a.Warn = took.Milliseconds()
		case "silence":
			a.Silence = approval.Silence(value)
		case "default":
			a.Default = approval.Verdict(value)
		case "escalate":
			a.Escalate = strings.Split(value, ",")
		case "quorum":
			_, err := fmt.Sscan(value, &a.Quorum)
			require.NoError(t, err)
		}
	}
	return func(ctx context.Context, s lives) (lives, error) {
		var err error
		switch what {
		case "ask":
			_, err = superstep.Interrupt[json.RawMessage](ctx, "?")
		case "wait":
			_, err = superstep.WaitEvent[json.RawMessage](ctx, words[0], 0)
		default:
			_, err = superstep.Approve(ctx, a)
		}
		return s, err
	}
}

// calls is a node that writes to the outside and asks then. Nothing undoes a final write.
func calls(b *superstep.StateGraph[lives], name string, final bool) func(context.Context, lives) (lives, error) {
	pay := rig.NewBank().Effect(name)
	if final {
		pay.Compensate = nil
	}
	b.AddEffect(pay)
	return func(ctx context.Context, s lives) (lives, error) {
		_, err := pay.Call(ctx, rig.Transfer{To: name, Amount: 1})
		if err == nil {
			_, err = superstep.Interrupt[json.RawMessage](ctx, "?")
		}
		return s, err
	}
}

// look waits until the run rests or ends, and notes what it asks.
func (s *lifeScript) look(t *testing.T) thread.View {
	t.Helper()
	_, ended := s.thread.Wait(t.Context())
	v, err := s.thread.Show(t.Context())
	require.NoError(t, err)
	if v.Status != thread.StatusCancelled {
		require.NoError(t, ended)
	}
	var pairs []string
	for _, q := range v.Questions {
		s.asked[q.Node] = q
	}
	for node, q := range s.asked {
		pairs = append(pairs, q.ID, node)
	}
	s.names = strings.NewReplacer(pairs...)
	return v
}

func (s *lifeScript) answer(ctx context.Context, words []string, by string) error {
	q := s.asked[words[0]]
	opts := []superstep.RequestOption{superstep.AskedBy(by)}
	var value any = json.RawMessage(words[1])
	if q.Approval != nil {
		value = approval.Reply{Verdict: approval.Verdict(words[1])}
		opts = append(opts, superstep.WithToken(graphtest.Token(s.thread.ID(), q, by)))
	}
	_, err := s.thread.Answer(ctx, q.ID, value, opts...)
	return err
}

// until waits until the audit has another entry of that kind.
func (s *lifeScript) until(t *testing.T, kind approval.Kind) {
	t.Helper()
	require.Eventually(t, func() bool {
		entries, _, err := s.thread.Audit(t.Context())
		if err != nil || !slices.ContainsFunc(entries[s.waited:], func(e approval.Entry) bool { return e.Kind == kind }) {
			return false
		}
		s.waited = len(entries)
		return true
	}, 2*time.Minute, 50*time.Millisecond, "nothing was %s", kind)
}

func (s *lifeScript) stands(t *testing.T) string {
	t.Helper()
	v := s.look(t)
	out := "no pause\n"
	if v.Paused != nil {
		out = fmt.Sprintf("paused by %q: %s\n", v.Paused.By, s.named(v.Paused.Reason))
	}
	for _, q := range v.Questions {
		out += fmt.Sprintf("question %s\n", q.Node)
	}
	for _, w := range v.Waits {
		out += fmt.Sprintf("wait %s for %s\n", w.Node, w.Event)
	}
	if c := v.Cancel; c != nil {
		out += fmt.Sprintf("undone %d, left %d\n", c.Undone, len(c.Left))
	}
	for _, k := range v.Kept {
		out += fmt.Sprintf("kept %s by %q\n", k.Event, k.By)
	}
	return out
}

func (s *lifeScript) audit(t *testing.T) string {
	t.Helper()
	entries, _, err := s.thread.Audit(t.Context())
	require.NoError(t, err)
	var b strings.Builder
	for _, e := range entries[s.shown:] {
		if e.Kind == approval.KindUsed { // the node's doing, not its life's
			continue
		}
		b.WriteString(string(e.Kind))
		for _, part := range []struct{ name, value string }{
			{"on", e.Question}, {"who", e.Who}, {"claimed", e.Claimed}, {"verdict", string(e.Verdict)}, {"mode", e.Mode}, {"node", e.Node},
			{"event", e.Event}, {"effect", e.Effect}, {"state", e.State}, {"op", string(e.Op)}, {"code", string(e.Code)}, {"why", e.Reason},
		} {
			if part.value != "" {
				fmt.Fprintf(&b, " %s=%s", part.name, s.named(part.value))
			}
		}
		b.WriteByte('\n')
	}
	s.shown = len(entries)
	return b.String()
}

// scriptTimes differ from run to run.
var scriptTimes = regexp.MustCompile(`[0-9-]{10}T[0-9:]{8}Z`)

// named is a text with the names of nodes for the ids of their questions.
func (s *lifeScript) named(text string) string {
	return scriptTimes.ReplaceAllString(s.names.Replace(text), "…")
}
