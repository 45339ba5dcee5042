package pregel

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// Amounts are what a thread spends, or may spend: of a budget 0 is no limit.
type Amounts struct {
	Tokens int64 `json:"tokens,omitempty"`
	// MicroUSD is money, in millionths of a dollar.
	MicroUSD int64 `json:"micro_usd,omitempty"`
	// Writes are effects that the outside has.
	Writes int64 `json:"writes,omitempty"`
	// Millis is time in which a task was under way, in milliseconds: the wall clock without waits for people and events.
	Millis int64 `json:"ms,omitempty"`
	// Supersteps are those of the graph and of its subgraphs.
	Supersteps int64 `json:"supersteps,omitempty"`
}

// MaxAmount bounds each amount: what is more counts as this.
const MaxAmount = 1e15

// amount is one part of amounts: its name in questions, and how many of its units one of the question's is.
type amount struct {
	name, unit string
	per        float64
	of         func(*Amounts) *int64
}

// amounts are always in this order.
var amounts = [...]amount{
	{"tokens", "tokens", 1, func(a *Amounts) *int64 { return &a.Tokens }},
	{"usd", "USD", 1e6, func(a *Amounts) *int64 { return &a.MicroUSD }},
	{"writes", "writes", 1, func(a *Amounts) *int64 { return &a.Writes }},
	{"seconds", "seconds", 1e3, func(a *Amounts) *int64 { return &a.Millis }},
	{"supersteps", "supersteps", 1, func(a *Amounts) *int64 { return &a.Supersteps }},
}

// Problem says why the amounts are no budget, "" when they are one.
func (a Amounts) Problem() string {
	for _, part := range amounts {
		if n := *part.of(&a); n < 0 || n > MaxAmount {
			return fmt.Sprintf("the budget for %s is %s: it is from 0, which is no limit, to %s", part.name, part.text(n), part.text(MaxAmount))
		}
	}
	return ""
}

func (p amount) text(n int64) string { return fmt.Sprintf("%.15g", float64(n)/p.per) }

// grow adds n, at most to [MaxAmount]; what is negative counts as nothing.
func grow(to *int64, n int64) { *to = min(*to+min(max(n, 0), MaxAmount), MaxAmount) }

// Spent is what one execution of a task has spent since the task was handed out, as its runner knows. Began and Ended are
// when it ran, in milliseconds since 1970; zero when nobody knows.
type Spent struct {
	Tokens   int64 `json:"tokens,omitempty"`
	MicroUSD int64 `json:"micro_usd,omitempty"`
	Writes   int64 `json:"writes,omitempty"`
	Began    int64 `json:"began_ms,omitempty"`
	Ended    int64 `json:"ended_ms,omitempty"`
}

// Meter counts what a thread spends of its budget. What was spent stays spent: the meter goes along with the thread to
// whatever checkpoint it goes on from.
type Meter struct {
	Limit Amounts `json:"limit"`
	// Spent has no Millis of the time since Since: see [Meter.Total].
	Spent Amounts `json:"spent,omitzero"`
	// Since and Until bound the latest time in which a task was under way throughout, in milliseconds since 1970.
	Since int64 `json:"since_ms,omitempty"`
	Until int64 `json:"until_ms,omitempty"`
	// Asked counts the questions for more. Open says that the last one waits for its answer, Refused that its answer was no.
	Asked   int  `json:"asked,omitempty"`
	Open    bool `json:"open,omitempty"`
	Refused bool `json:"refused,omitempty"`
}

// Meter returns what the thread has spent of its budget, nil for a thread without one.
func (t *Thread) Meter() *Meter { return t.meter.copy() }

func (m *Meter) copy() *Meter {
	if m == nil {
		return nil
	}
	c := *m
	return &c
}

// anew is the meter of a thread that begins with a checkpoint of another one: it has spent nothing.
func (m *Meter) anew() *Meter {
	if m == nil {
		return nil
	}
	return &Meter{Limit: m.Limit}
}

// budget gives the thread a budget in place of the one that it had.
func (t *Thread) budget(limit Amounts) {
	if t.meter == nil {
		t.meter = &Meter{}
	}
	t.meter.Limit, t.meter.Open = limit, false
}

// Total is all that was spent.
func (m *Meter) Total() Amounts {
	total := m.Spent
	grow(&total.Millis, m.Until-m.Since)
	return total
}

// count adds what a task has spent. Tasks run beside each other, so time counts once: while one is under way that began
// before the last one ended, it is one time. Tasks that end out of order may make it longer, never shorter.
func (m *Meter) count(s *Spent) {
	if m == nil || s == nil {
		return
	}
	grow(&m.Spent.Tokens, s.Tokens)
	grow(&m.Spent.MicroUSD, s.MicroUSD)
	grow(&m.Spent.Writes, s.Writes)
	switch {
	case s.Began <= 0 || s.Ended < s.Began:
	case m.Until == 0 || s.Began > m.Until:
		grow(&m.Spent.Millis, m.Until-m.Since)
		m.Since, m.Until = s.Began, s.Ended
	default:
		m.Since, m.Until = min(m.Since, s.Began), max(m.Until, s.Ended)
	}
}

// superstep counts one with these tasks, unless it was the entry's.
func (m *Meter) superstep(tasks []*taskRun) {
	if m != nil && len(tasks) > 0 && tasks[0].task.node != 0 {
		grow(&m.Spent.Supersteps, 1)
	}
}

// reached are the parts of the budget of which nothing is left.
func (m *Meter) reached() (out []amount) {
	if m == nil {
		return nil
	}
	total := m.Total()
	for _, part := range amounts {
		if limit := *part.of(&m.Limit); limit > 0 && *part.of(&total) >= limit {
			out = append(out, part)
		}
	}
	return out
}

// BudgetNode is where the question for more of a budget comes from, in the place of a node's name.
const BudgetNode = "budget"

// question is the meter's open question.
func (m *Meter) question() Question {
	total, value := m.Total(), budgetQuestion{Spent: map[string]json.Number{}, Left: map[string]json.Number{}}
	properties := map[string]any{"stop": map[string]any{"type": "boolean", "description": "true ends the run; nothing more is given"}}
	var said []string
	for _, part := range m.reached() {
		said = append(said, fmt.Sprintf("%s of %s %s", part.text(*part.of(&total)), part.text(*part.of(&m.Limit)), part.unit))
	}
	value.Question = "The budget is spent: " + strings.Join(said, ", ") + ". How much more may it spend?"
	for _, part := range amounts {
		limit, spent := *part.of(&m.Limit), *part.of(&total)
		if limit > 0 || spent > 0 {
			value.Spent[part.name] = json.Number(part.text(spent))
		}
		if limit == 0 {
			continue
		}
		value.Left[part.name] = json.Number(part.text(max(limit-spent, 0)))
		kind := "integer"
		if part.per > 1 {
			kind = "number"
		}
		properties[part.name] = map[string]any{"type": kind, "minimum": 0, "maximum": MaxAmount / part.per, "description": "how many more " + part.unit}
	}
	schema, _ := json.Marshal(map[string]any{"type": "object", "properties": properties, "additionalProperties": false, "minProperties": 1}) // of plain values
	asks, _ := json.Marshal(value)
	return Question{ID: "budget-" + itoa(m.Asked), Value: asks, Schema: schema}
}

// budgetQuestion is what is asked when a budget is spent.
type budgetQuestion struct {
	Question string                 `json:"question"`
	Spent    map[string]json.Number `json:"spent"`
	Left     map[string]json.Number `json:"left"`
}

// openBudget is the open question for more, with its place.
func (t *Thread) openBudget() (OpenQuestion, bool) {
	if t.meter == nil || !t.meter.Open || t.Head == nil {
		return OpenQuestion{}, false
	}
	return OpenQuestion{Question: t.meter.question(), Node: BudgetNode, Step: t.Head.Checkpoint.Step + 1}, true
}

// answerBudget takes the answer to the open question for more, and reports whether it is one. What is given is on top of
// what was spent, or of the limit where that is higher. An answer that cannot be read leaves the question open.
func (t *Thread) answerBudget(a Answer) bool {
	q, open := t.openBudget()
	if !open || a.QuestionID != q.ID {
		return false
	}
	var more map[string]json.RawMessage
	if json.Unmarshal(a.Value, &more) != nil {
		return true
	}
	m, total := t.meter, t.meter.Total()
	var stop bool
	_ = json.Unmarshal(more["stop"], &stop) // the schema says what it is
	if stop {
		m.Open, m.Refused = false, true
		return true
	}
	for _, part := range amounts {
		var n float64
		if limit := part.of(&m.Limit); *limit > 0 && json.Unmarshal(more[part.name], &n) == nil && n > 0 {
			*limit = max(*limit, *part.of(&total))
			grow(limit, int64(min(math.Round(n*part.per), MaxAmount)))
		}
	}
	m.Open = false
	return true
}

// stop stops a run between two supersteps because its budget is spent: the root asks for more, or ends when it was told that
// there is no more. A subgraph stops for the root to ask.
func (m *Meter) stop(l *Loop) {
	if l.root != l {
		l.status, l.err = StatusDrained, &DrainedError{Graph: l.prog.Spec.Name, Reason: "the budget is spent"}
		return
	}
	if m.Refused {
		l.fail(&BudgetError{Graph: l.prog.Spec.Name, Meter: *m})
		return
	}
	if !m.Open {
		m.Asked, m.Open = m.Asked+1, true
	}
	l.status = StatusWaiting
	t := &Task{Node: BudgetNode, Path: BudgetNode, node: -1}
	l.place(t)
	l.emit(Event{Kind: EventInterrupt, Task: t, Questions: []Question{m.question()}, Work: l.work})
}

// BudgetError says that a run's budget is spent, and that whoever was asked gives no more. The thread can be continued with
// a retry, which asks again, or with another budget.
type BudgetError struct {
	Graph string
	Meter Meter
}

func (e *BudgetError) Error() string {
	var said []string
	total := e.Meter.Total()
	for _, part := range e.Meter.reached() {
		said = append(said, fmt.Sprintf("%s of %s %s", part.text(*part.of(&total)), part.text(*part.of(&e.Meter.Limit)), part.unit))
	}
	return fmt.Sprintf("graph %q has spent its budget (%s), and no more was given: give it a larger one, or retry and answer what it asks",
		e.Graph, strings.Join(said, ", "))
}

// ErrorType names the error for programs.
func (e *BudgetError) ErrorType() string { return "OutOfBudget" }
