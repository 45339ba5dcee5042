package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"superstep.dev"
	"superstep.dev/message"
)

// graphs are those that clients of the agent server's protocol are tested with: a question, a model that streams, Send, a
// subgraph, a failure, a slow run, two questions at once, a context, a chain, and the question of an inbox.
func graphs() []superstep.Runnable {
	return []superstep.Runnable{refund(), chat(), mapReduce(), outer(), fails(), slow(), panel(), greet(), steps(), mail()}
}

type order struct {
	OrderID superstep.Value[string] `json:"order_id"`
}

type receipt struct {
	ID     string `json:"id"`
	Amount int64  `json:"amount"`
}

type refundState struct {
	order
	Amount   superstep.Value[int64]   `json:"amount"`
	Approved superstep.Value[bool]    `json:"approved"`
	Receipt  superstep.Value[receipt] `json:"receipt"`
	Log      superstep.List[string]   `json:"log"`
}

func money(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

func refund() superstep.Runnable {
	amounts := map[string]int64{"o-1": 4200, "o-2": 25000, "o-3": 990000}
	g := superstep.NewStateGraph[refundState]("refund")
	g.AddNode("read_order", func(ctx context.Context, s refundState) (refundState, error) {
		amount, known := amounts[s.OrderID.Get()]
		if !known {
			return s, fmt.Errorf("there is no order %q", s.OrderID.Get())
		}
		s.Amount.Set(amount)
		s.Log.Append("paid " + money(amount))
		return s, superstep.Emit(ctx, "paid "+money(amount))
	})
	g.AddNode("approval", func(ctx context.Context, s refundState) (refundState, error) {
		yes, err := superstep.Interrupt[bool](ctx, fmt.Sprintf("Refund %s to order %s?", money(s.Amount.Get()), s.OrderID.Get()))
		if err != nil {
			return s, err
		}
		s.Approved.Set(yes)
		if yes {
			s.Log.Append("approved")
		} else {
			s.Log.Append("declined")
		}
		return s, nil
	})
	g.AddNode("commit_refund", func(ctx context.Context, s refundState) (refundState, error) {
		id := "rf-" + s.OrderID.Get()
		s.Receipt.Set(receipt{id, s.Amount.Get()})
		s.Log.Append("refunded " + id)
		return s, superstep.Emit(ctx, "refunded "+id)
	})
	g.AddNode("notify", func(_ context.Context, s refundState) (refundState, error) {
		s.Log.Append("customer told")
		return s, nil
	})
	g.AddEdge(superstep.Start, "read_order")
	g.AddConditionalEdges("read_order", func(_ context.Context, s refundState) ([]superstep.Target, error) {
		if s.Amount.Get() > 10000 {
			return superstep.To("approval"), nil
		}
		return superstep.To("commit_refund"), nil
	}, "approval", "commit_refund")
	g.AddConditionalEdges("approval", func(_ context.Context, s refundState) ([]superstep.Target, error) {
		if s.Approved.Get() {
			return superstep.To("commit_refund"), nil
		}
		return superstep.To("notify"), nil
	}, "commit_refund", "notify")
	g.AddEdge("commit_refund", "notify")
	return g.MustCompile(superstep.WithInput[order]())
}

type chatState struct {
	Messages superstep.Messages `json:"messages"`
}

func chat() superstep.Runnable {
	g := superstep.NewStateGraph[chatState]("chat")
	g.AddNode("model", scripted)
	g.AddNode("tools", func(_ context.Context, s chatState) (chatState, error) {
		last, _ := s.Messages.Last()
		for _, call := range last.Calls() {
			var args struct {
				City string `json:"city"`
			}
			if err := json.Unmarshal([]byte(call.Arguments), &args); err != nil {
				return s, err
			}
			result := message.ToolResult(call, "sunny in "+args.City)
			result.Name = call.Name
			s.Messages.Append(result)
		}
		return s, nil
	})
	g.AddEdge(superstep.Start, "model")
	g.AddConditionalEdges("model", func(_ context.Context, s chatState) ([]superstep.Target, error) {
		if last, _ := s.Messages.Last(); len(last.Calls()) > 0 {
			return superstep.To("tools"), nil
		}
		return superstep.To(superstep.End), nil
	}, "tools", superstep.End)
	g.AddEdge("tools", "model")
	return g.MustCompile()
}

// scripted is a model that follows a rule and streams its reply.
func scripted(ctx context.Context, s chatState) (chatState, error) {
	last, _ := s.Messages.Last()
	text := last.Content.Text
	if len(last.Content.Parts) > 0 {
		text = last.Content.Parts[0].Text
	}
	// An attempt that is repeated says the same message; one that is asked for again, from an earlier checkpoint, says another one.
	id := "lc_run--" + uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "%s %d", last.ID, superstep.Info(ctx).Step)).String() + "-0"
	reply := message.Message{ID: id, Role: message.RoleAssistant}
	city, asks := strings.CutPrefix(text, "weather in ")
	switch {
	case last.Role == message.RoleTool:
		reply.Content = message.Text("It is " + text + ".")
	case asks:
		return callTool(ctx, s, reply, city)
	default:
		reply.Content = message.Text("You said " + text)
	}
	for _, word := range append(words(reply.Content.Text), "") {
		if err := superstep.EmitMessage(ctx, message.Message{ID: id, Role: message.RoleAssistant, Content: message.Text(word)}); err != nil {
			return s, err
		}
	}
	s.Messages.Append(reply)
	return s, nil
}

// words takes a text apart before each space.
func words(text string) []string {
	out := strings.Split(text, " ")
	for i := range out[1:] {
		out[i+1] = " " + out[i+1]
	}
	return out
}

// callTool streams a call in two pieces: its name, and its arguments.
func callTool(ctx context.Context, s chatState, reply message.Message, city string) (chatState, error) {
	args := fmt.Sprintf(`{"city": %q}`, city)
	first, second := reply, reply
	first.ToolCalls = []message.ToolCall{{ID: "call_1", Name: "get_weather"}}
	second.ToolCalls = []message.ToolCall{{Arguments: args}}
	for _, piece := range []message.Message{first, second, reply} { // the last one is empty, as that of a text
		if err := superstep.EmitMessage(ctx, piece); err != nil {
			return s, err
		}
	}
	reply.ToolCalls = []message.ToolCall{{ID: "call_1", Name: "get_weather", Arguments: args}}
	s.Messages.Append(reply)
	return s, nil
}

type mapState struct {
	Items   superstep.Value[[]string] `json:"items"`
	Results superstep.List[string]    `json:"results"`
	Summary superstep.Value[string]   `json:"summary"`
}

type item struct {
	Item string `json:"item"`
}

func mapReduce() superstep.Runnable {
	g := superstep.NewStateGraph[mapState]("mapreduce")
	g.AddNode("plan", func(_ context.Context, s mapState) (mapState, error) { return s, nil })
	superstep.AddInputNode(g, "work", func(_ context.Context, in item) (superstep.Command[mapState], error) {
		var s mapState
		s.Results.Append(strings.ToUpper(in.Item))
		return superstep.Command[mapState]{Update: s}, nil
	})
	g.AddNode("reduce", func(_ context.Context, s mapState) (mapState, error) {
		s.Summary.Set(strings.Join(s.Results.Get(), "+"))
		return s, nil
	})
	g.AddEdge(superstep.Start, "plan")
	g.AddConditionalEdges("plan", func(_ context.Context, s mapState) ([]superstep.Target, error) {
		var each []item
		for _, i := range s.Items.Get() {
			each = append(each, item{i})
		}
		return superstep.SendEach("work", each), nil
	}, "work")
	g.AddEdge("work", "reduce")
	return g.MustCompile()
}

type childState struct {
	Topic  superstep.Value[string] `json:"topic"`
	Draft  superstep.Value[string] `json:"draft"`
	Answer superstep.Value[string] `json:"answer"`
}

type outerState struct {
	Topic  superstep.Value[string] `json:"topic"`
	Answer superstep.Value[string] `json:"answer"`
	Log    superstep.List[string]  `json:"log"`
}

func outer() superstep.Runnable {
	child := superstep.NewStateGraph[childState]("child")
	child.AddNode("draft", func(_ context.Context, s childState) (childState, error) {
		s.Draft.Set("draft of " + s.Topic.Get())
		return s, nil
	})
	child.AddNode("ask", func(ctx context.Context, s childState) (childState, error) {
		answer, err := superstep.Interrupt[string](ctx, map[string]string{"ask": "Is it good?", "draft": s.Draft.Get()})
		if err == nil {
			s.Answer.Set(answer)
		}
		return s, err
	})
	chain(child, "draft", "ask")
	g := superstep.NewStateGraph[outerState]("outer")
	g.AddNode("before", func(_ context.Context, s outerState) (outerState, error) {
		s.Log.Append("before")
		return s, nil
	})
	g.AddSubgraph("child", child.MustCompile())
	g.AddNode("after", func(_ context.Context, s outerState) (outerState, error) {
		s.Log.Append("after " + s.Answer.Get())
		return s, nil
	})
	chain(g, "before", "child", "after")
	return g.MustCompile()
}

// chain leads from the start through the nodes in a row.
func chain[S any](g *superstep.StateGraph[S], nodes ...string) {
	at := superstep.Start
	for _, n := range nodes {
		g.AddEdge(at, n)
		at = n
	}
}

// valueError names itself as clients in Python know such an error.
type valueError string

// Error implements error in one line.
func (e valueError) Error() string { return string(e) }

// ErrorType names the kind of the error.
func (e valueError) ErrorType() string { return "ValueError" }

type failState struct {
	Word superstep.Value[string] `json:"word"`
	Log  superstep.List[string]  `json:"log"`
}

func fails() superstep.Runnable {
	g := superstep.NewStateGraph[failState]("fails")
	g.AddNode("first", func(_ context.Context, s failState) (failState, error) {
		s.Log.Append("first")
		return s, nil
	})
	g.AddNode("boom", func(_ context.Context, s failState) (failState, error) {
		if s.Word.Get() != "good" {
			return s, valueError("boom: " + s.Word.Get())
		}
		s.Log.Append("fine")
		return s, nil
	})
	chain(g, "first", "boom")
	return g.MustCompile()
}

type slowState struct {
	Steps   superstep.Value[int]   `json:"steps"`
	DelayMS superstep.Value[int]   `json:"delay_ms"`
	Log     superstep.List[string] `json:"log"`
}

func slow() superstep.Runnable {
	g := superstep.NewStateGraph[slowState]("slow")
	g.AddNode("tick", func(ctx context.Context, s slowState) (slowState, error) {
		n := len(s.Log.Get()) + 1
		if err := superstep.Emit(ctx, map[string]int{"tick": n}); err != nil {
			return s, err
		}
		select {
		case <-time.After(time.Duration(s.DelayMS.Get()) * time.Millisecond):
		case <-ctx.Done():
			return s, context.Cause(ctx)
		}
		s.Log.Append(fmt.Sprint("tick ", n))
		return s, nil
	})
	g.AddEdge(superstep.Start, "tick")
	g.AddConditionalEdges("tick", func(_ context.Context, s slowState) ([]superstep.Target, error) {
		if len(s.Log.Get()) < s.Steps.Get() {
			return superstep.To("tick"), nil
		}
		return superstep.To(superstep.End), nil
	}, "tick", superstep.End)
	return g.MustCompile()
}

type panelState struct {
	Subject superstep.Value[string] `json:"subject"`
	Votes   superstep.List[string]  `json:"votes"`
	Verdict superstep.Value[string] `json:"verdict"`
}

func panel() superstep.Runnable {
	g := superstep.NewStateGraph[panelState]("panel")
	for _, who := range []string{"legal", "finance"} {
		g.AddNode(who, func(ctx context.Context, s panelState) (panelState, error) {
			vote, err := superstep.Interrupt[string](ctx, map[string]string{"who": who, "subject": s.Subject.Get()})
			if err == nil {
				s.Votes.Append(who + ": " + vote)
			}
			return s, err
		})
		g.AddEdge(superstep.Start, who)
	}
	g.AddNode("close", func(_ context.Context, s panelState) (panelState, error) {
		s.Verdict.Set(strings.Join(slices.Sorted(slices.Values(s.Votes.Get())), "; "))
		return s, nil
	})
	g.AddJoin([]string{"legal", "finance"}, "close")
	return g.MustCompile()
}

type caller struct {
	User string `json:"user,omitempty"`
	Tone string `json:"tone,omitempty"`
}

type greetState struct {
	Name     superstep.Value[string] `json:"name"`
	Greeting superstep.Value[string] `json:"greeting"`
}

func greet() superstep.Runnable {
	g := superstep.NewStateGraph[greetState]("greet")
	g.AddNode("greet", func(ctx context.Context, s greetState) (greetState, error) {
		who, err := superstep.RunContext[caller](ctx)
		if none := (*superstep.StateError)(nil); err != nil && !errors.As(err, &none) { // a run without a context has no caller
			return s, err
		}
		word, user := "Good day", "nobody"
		if who.Tone == "casual" {
			word = "Hey"
		}
		if who.User != "" {
			user = who.User
		}
		s.Greeting.Set(fmt.Sprintf("%s, %s (from %s)", word, s.Name.Get(), user))
		return s, nil
	})
	chain(g, "greet")
	return g.MustCompile(superstep.WithContextSchema[caller]())
}

type stepsState struct {
	Note superstep.Value[string] `json:"note"`
	Log  superstep.List[string]  `json:"log"`
}

func steps() superstep.Runnable {
	g := superstep.NewStateGraph[stepsState]("steps")
	for _, name := range []string{"a", "b", "c"} {
		g.AddNode(name, func(_ context.Context, s stepsState) (stepsState, error) {
			line := name
			if note := s.Note.Get(); note != "" {
				line += ":" + note
			}
			s.Log.Append(line)
			return s, nil
		})
	}
	chain(g, "a", "b", "c")
	return g.MustCompile()
}

type mailState struct {
	To     superstep.Value[string] `json:"to"`
	Body   superstep.Value[string] `json:"body"`
	Status superstep.Value[string] `json:"status"`
}

// decision is what an inbox answers.
type decision struct {
	Type string `json:"type"`
	Args any    `json:"args"`
}

func mail() superstep.Runnable {
	g := superstep.NewStateGraph[mailState]("mail")
	g.AddNode("review", func(ctx context.Context, s mailState) (mailState, error) {
		answers, err := superstep.Interrupt[[]decision](ctx, []any{map[string]any{
			"action_request": map[string]any{"action": "send_mail", "args": map[string]string{"to": s.To.Get(), "body": s.Body.Get()}},
			"config":         map[string]bool{"allow_ignore": true, "allow_respond": true, "allow_edit": true, "allow_accept": true},
			"description":    "Send this mail?",
		}})
		if err != nil {
			return s, err
		}
		if len(answers) == 0 {
			return s, fmt.Errorf("the answer is empty")
		}
		switch answer := answers[0]; answer.Type {
		case "accept":
			s.Status.Set("sent: " + s.Body.Get())
		case "edit":
			edited, _ := answer.Args.(map[string]any)
			args, _ := edited["args"].(map[string]any)
			body, _ := args["body"].(string)
			s.Body.Set(body)
			s.Status.Set("sent: " + body)
		case "response":
			s.Status.Set(fmt.Sprint("not sent: ", answer.Args))
		default:
			s.Status.Set("ignored")
		}
		return s, nil
	})
	chain(g, "review")
	return g.MustCompile()
}
