package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// TestSecretsUnderOtherNames: a tool in Go reads {"CARD": ...} into its field card, so such a proposal is refused, as is one with a name
// that the tool does not know, or without one that it needs. No refusal tells the secret.
func TestSecretsUnderOtherNames(t *testing.T) {
	for name, runtime := range gatedRuntimes {
		t.Run(name, func(t *testing.T) {
			const secret = "4929-0000-1111"
			g := newGated(t)
			rt, id := runtime(t, g), testserver.Queue(t)
			th := g.graph.Thread(rt, id)
			as := func(q thread.Question, by string) superstep.RequestOption {
				return g.token(t, q, by, func(c *approval.Claims) { c.Thread, c.ExpiresAt = id, time.Now().Add(10*time.Minute) })
			}
			hidden := func(shown ...any) {
				t.Helper()
				for _, what := range shown {
					text, err := json.Marshal(what)
					require.NoError(t, err)
					require.NotContains(t, string(text), secret)
				}
			}
			result, err := th.Invoke(t.Context(), claimFor(250), superstep.WithRequester("rita"))
			require.NoError(t, err)
			q := result.Questions[0]

			for about, params := range map[string]string{
				"a name that the tool does not know": `{"amount":200,"cart":"` + secret + `"}`,
				"a secret in the wrong place":        `{"amount":"` + secret + `","card":"1"}`,
				"a number for a text":                `{"amount":200,"card":49290000}`,
				"names in other letter case":         `{"AMOUNT":200,"CARD":"` + secret + `"}`,
				"a name that is missing":             `{"card":"` + secret + `"}`,
				"null":                               `null`,
				"null for a number":                  `{"amount":null,"card":"` + secret + `"}`,
				"what was asked about":               `{"amount":250.0,"card":"4929"}`,
			} {
				_, err = th.Edit(t.Context(), q.ID, json.RawMessage(params), as(q, "ann"))
				require.Equal(t, approval.CodeBadReply, refusedFor(err), "%s: %v", about, err)
				require.ErrorIs(t, err, thread.ErrBadInput, about)
				require.NotContains(t, err.Error(), "token", about)
				require.NotContains(t, err.Error(), secret)
				require.NotContains(t, err.Error(), "4929")
			}

			result, err = th.Edit(t.Context(), q.ID, json.RawMessage(`{"amount":200,"card":"`+secret+`"}`), as(q, "ann"))
			require.NoError(t, err)
			q = result.Questions[0]
			require.JSONEq(t, `{"amount":200,"card":"***"}`, string(q.Approval.Params))
			hash, err := approval.HashParams(json.RawMessage(fmt.Sprintf(`{"amount":200,"card":%q}`, secret)))
			require.NoError(t, err)
			require.Equal(t, hash, q.Approval.ParamsHash)
			state, err := th.State(t.Context())
			require.NoError(t, err)
			history, err := th.History(t.Context())
			require.NoError(t, err)
			entries, _, err := th.Audit(t.Context())
			require.NoError(t, err)
			hidden(q, result.Questions, state, history, entries)
			if c, ok := rt.(*superstep.Client); ok {
				view, err := c.Show(t.Context(), id)
				require.NoError(t, err)
				question, err := c.Question(t.Context(), id, q.ID)
				require.NoError(t, err)
				hidden(view, question)
			}
			_, err = th.Approve(t.Context(), q.ID, as(q, "bob"))
			require.NoError(t, err)
			require.Equal(t, []claimOf{{Amount: 200, Card: secret}}, g.paid)
		})
	}
}

// TestSecretsOfWhatCannotBeUndone: whoever is asked about a write that no program can undo sees its parameters without the
// secrets that the effect declares, and nobody else is told them either.
func TestSecretsOfWhatCannotBeUndone(t *testing.T) {
	const secret = "4929-0000-1111"
	o := newOffice()
	o.effect.Compensate = func(context.Context, string, claimOf, string) error {
		return superstep.Permanent(errors.New("the account is closed"))
	}
	g := superstep.NewStateGraph[rig.Payment]("office-undone")
	g.AddEffect(o.effect)
	g.AddNode("pay", func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
		if _, err := o.effect.Call(ctx, claimOf{Amount: 50, Card: secret}); err != nil {
			return s, err
		}
		_, err := superstep.Interrupt[bool](ctx, "go on?")
		return s, err
	})
	g.AddEdge(superstep.Start, "pay")
	graph := g.MustCompile()
	for name, runtime := range map[string]func(*testing.T, *listener) superstep.Runtime{
		"memory": func(*testing.T, *listener) superstep.Runtime { return superstep.NewMemory() },
		"temporal": func(t *testing.T, l *listener) superstep.Runtime {
			s := rig.NewServer(t)
			s.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{graph}, Notify: l.notifier()})
			return s.Client
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, id := listen(t, 0), testserver.Queue(t)
			rt := runtime(t, l)
			th := graph.Thread(rt, id)
			hidden := func(shown ...any) {
				t.Helper()
				for _, what := range shown {
					text, err := json.Marshal(what)
					require.NoError(t, err)
					require.NotContains(t, string(text), secret)
				}
			}
			_, err := th.Invoke(t.Context(), rig.Payment{})
			require.NoError(t, err)
			require.NoError(t, th.Cancel(t.Context(), "ordered twice", superstep.WithMode(thread.CancelCompensate)))
			for _, answer := range []string{"repeat", "leave"} { // what is asked again is masked again
				asked, err := th.Wait(t.Context())
				require.NoError(t, err)
				require.Len(t, asked.Questions, 1)
				var about struct {
					Kind, Reason string
					Params       json.RawMessage
				}
				require.NoError(t, json.Unmarshal(asked.Questions[0].Value, &about))
				require.Equal(t, "compensate", about.Kind)
				require.Contains(t, about.Reason, "the account is closed")
				require.JSONEq(t, `{"amount":50,"card":"***"}`, string(about.Params))
				entries, _, err := th.Audit(t.Context())
				require.NoError(t, err)
				effects, err := th.Effects(t.Context())
				require.NoError(t, err)
				hidden(asked, entries, effects)
				if c, ok := rt.(*superstep.Client); ok {
					view, err := c.Show(t.Context(), id)
					require.NoError(t, err)
					question, err := c.Question(t.Context(), id, asked.Questions[0].ID)
					require.NoError(t, err)
					hidden(view, question)
				}
				_, err = th.Resume(t.Context(), answer)
				require.Equal(t, answer == "leave", err != nil, "%v", err) // the run is cancelled then
			}
			entries, _, err := th.Audit(t.Context())
			require.NoError(t, err)
			hidden(entries)
			if name == "temporal" {
				told := l.await(func(_ int, told []approval.Notice) bool {
					return slices.ContainsFunc(told, func(n approval.Notice) bool { return strings.Contains(n.Summary, "could not be undone") })
				})
				hidden(told)
			}
		})
	}
}
