package pregel_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"superstep.dev/graphadapter/pregel"
)

// spender is a graph that spends for ever: a, and a subgraph whose node is b, run beside each other, again and again.
const spender = `{"version":1,"name":"g","nodes":[{"name":"a"},{"name":"sub","subgraph":"inner"}],
	"edges":[{"from":"__start__","to":"a"},{"from":"a","to":"sub"},{"from":"sub","to":"a"}],
	"subgraphs":{"inner":{"version":1,"name":"inner","nodes":[{"name":"b"}],"edges":[{"from":"__start__","to":"b"},{"from":"b","to":"b"}]}}}`

// endless is one node that goes on to itself.
const endless = `{"version":1,"name":"g","nodes":[{"name":"a"}],"edges":[{"from":"__start__","to":"a"},{"from":"a","to":"a"}]}`

// metered drives a run on a thread until it stands, with a suspended loop between any two outcomes. Each task spends that.
func metered(t *testing.T, p *pregel.Program, thread *pregel.Thread, in pregel.Input, limit *pregel.Amounts, spent pregel.Spent) (*pregel.Loop, int) {
	t.Helper()
	l, err := p.Start(thread, in, pregel.Options{RecursionLimit: 1000, Budget: limit}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	tasks := 0
	for ready := l.Ready(); len(ready) > 0; ready = l.Ready() {
		for _, task := range ready {
			if !task.Metered {
				t.Fatalf("the task %s is not metered", task.Key())
			}
			o := spent
			if o.Ended > 0 {
				o.Began, o.Ended = o.Began+int64(1000*tasks), o.Ended+int64(1000*tasks)
			}
			l.Deliver(task, pregel.Outcome{Spent: &o})
			tasks++
		}
		if l, err = suspended(p, l, nil); err != nil {
			t.Fatal(err)
		}
	}
	*thread = *l.Thread()
	return l, tasks
}

func asks(t *testing.T, p *pregel.Program, l *pregel.Loop) pregel.OpenQuestion {
	t.Helper()
	open := p.OpenQuestions(l.Thread())
	if l.Status() != pregel.StatusWaiting || len(open) != 1 || open[0].Node != pregel.BudgetNode {
		t.Fatalf("it stands at %v, %v, and asks %v", l.Status(), l.Err(), open)
	}
	return open[0]
}

func answer(q pregel.OpenQuestion, text string) pregel.Input {
	return pregel.Input{Resume: &pregel.Resume{Answers: []pregel.Answer{{QuestionID: q.ID, Value: pregel.Value(text)}}}}
}

// TestABudgetStopsARunBehindTheSuperstep in which one of its limits is reached, and what is given goes on from what was spent.
func TestABudgetStopsARunBehindTheSuperstep(t *testing.T) {
	begin := pregel.Input{Value: pregel.Value(`{}`)}
	for name, c := range map[string]struct {
		limit pregel.Amounts
		spent pregel.Spent
		more  string
		// first and then are the tasks by the first question, and from there to the second.
		first, then int
	}{
		"tokens":     {pregel.Amounts{Tokens: 25}, pregel.Spent{Tokens: 10}, `{"tokens":11}`, 3, 2},
		"money":      {pregel.Amounts{MicroUSD: 2_500_000}, pregel.Spent{MicroUSD: 1_000_000}, `{"usd":0.5}`, 3, 1},
		"writes":     {pregel.Amounts{Writes: 1}, pregel.Spent{Writes: 5}, `{"writes":6}`, 1, 2},
		"time":       {pregel.Amounts{Millis: 700}, pregel.Spent{Began: 5000, Ended: 5300}, `{"seconds":0.3}`, 3, 1},
		"supersteps": {pregel.Amounts{Supersteps: 7}, pregel.Spent{}, `{"supersteps":2}`, 7, 2},
		"the lower":  {pregel.Amounts{Tokens: 1000, Supersteps: 2}, pregel.Spent{Tokens: 10}, `{"tokens":5,"supersteps":1}`, 2, 1},
	} {
		p, thread := compiled(t, endless), pregel.NewThread()
		l, tasks := metered(t, p, thread, begin, &c.limit, c.spent)
		q := asks(t, p, l)
		if tasks != c.first || q.ID != "budget-1" {
			t.Errorf("%s: %d tasks ran, then it asked %s", name, tasks, q.ID)
		}
		if l, tasks = metered(t, p, thread, answer(q, c.more), nil, c.spent); tasks != c.then || asks(t, p, l).ID != "budget-2" {
			t.Errorf("%s: %d more tasks ran", name, tasks)
		}
	}
}

// TestABudgetIsTheThreadsInSubgraphsToo: a loop in a subgraph stops within one superstep of it, and goes on from there.
func TestABudgetIsTheThreadsInSubgraphsToo(t *testing.T) {
	p, thread := compiled(t, spender), pregel.NewThread()
	l, tasks := metered(t, p, thread, pregel.Input{Value: pregel.Value(`{}`)}, &pregel.Amounts{Tokens: 5}, pregel.Spent{Tokens: 1})
	if q := asks(t, p, l); tasks != 5 || l.Thread().Meter().Spent.Supersteps != 5 {
		t.Errorf("%d tasks ran, spent %+v", tasks, l.Thread().Meter())
	} else if l, tasks = metered(t, p, thread, answer(q, `{"tokens":3}`), nil, pregel.Spent{Tokens: 1}); tasks != 3 || asks(t, p, l).ID != "budget-2" {
		t.Errorf("%d more tasks ran", tasks)
	}
}

// TestNoMoreEndsARun with an error that names what was spent; whoever goes on with the thread is asked again.
func TestNoMoreEndsARun(t *testing.T) {
	for _, graph := range []string{endless, spender} {
		p, thread := compiled(t, graph), pregel.NewThread()
		l, _ := metered(t, p, thread, pregel.Input{Value: pregel.Value(`{}`)}, &pregel.Amounts{Supersteps: 3}, pregel.Spent{})
		l, tasks := metered(t, p, thread, answer(asks(t, p, l), `{"stop":true}`), nil, pregel.Spent{})
		var spent *pregel.BudgetError
		if !errors.As(l.Err(), &spent) || l.Status() != pregel.StatusFailed || tasks != 0 || spent.Meter.Spent.Supersteps != 3 {
			t.Fatalf("it stands at %v behind %d tasks: %v", l.Status(), tasks, l.Err())
		}
		l, tasks = metered(t, p, thread, pregel.Input{}, nil, pregel.Spent{})
		if q := asks(t, p, l); tasks != 0 || q.ID != "budget-2" {
			t.Errorf("%d tasks ran, and it asks %s", tasks, q.ID)
		}
	}
}

// TestASmallerBudgetAsksAtOnce, new input takes the question back and asks anew, and no limit lets the thread go on.
func TestASmallerBudgetAsksAtOnce(t *testing.T) {
	p, thread := compiled(t, endless), pregel.NewThread()
	begin := pregel.Input{Value: pregel.Value(`{}`)}
	l, _ := metered(t, p, thread, begin, &pregel.Amounts{Tokens: 100}, pregel.Spent{Tokens: 50})
	asks(t, p, l)
	l, tasks := metered(t, p, thread, begin, &pregel.Amounts{Tokens: 20}, pregel.Spent{Tokens: 50})
	if q := asks(t, p, l); tasks != 0 || q.ID != "budget-2" {
		t.Errorf("%d tasks ran, and it asks %s", tasks, q.ID)
	}
	l, tasks = metered(t, p, thread, pregel.Input{}, &pregel.Amounts{Supersteps: 4}, pregel.Spent{Tokens: 50})
	if asks(t, p, l); tasks != 2 || thread.Meter().Spent.Tokens != 200 {
		t.Errorf("%d tasks ran, spent %+v", tasks, thread.Meter())
	}
}

// TestWhatWasSpentStaysSpent on any checkpoint of the thread; another thread that begins there has spent nothing.
func TestWhatWasSpentStaysSpent(t *testing.T) {
	p, thread := compiled(t, endless), pregel.NewThread()
	l, _ := metered(t, p, thread, pregel.Input{Value: pregel.Value(`{}`)}, &pregel.Amounts{Tokens: 30}, pregel.Spent{Tokens: 10})
	asks(t, p, l)
	stored, err := p.EncodeThread(thread)
	if err != nil {
		t.Fatal(err)
	}
	read, err := p.DecodeThread(stored)
	if err != nil {
		t.Fatal(err)
	}
	earlier := thread.At(thread.Head, pregel.ForReplay)
	p.Drop(earlier)
	for name, one := range map[string]*pregel.Thread{"read": read, "earlier": earlier, "copied": thread.Copy()} {
		if m := one.Meter(); m == nil || *m != *thread.Meter() {
			t.Errorf("%s: the meter is %+v", name, m)
		}
	}
	if m := thread.At(thread.Head, pregel.ForReplay).AsNewest().Meter(); *m != (pregel.Meter{Limit: pregel.Amounts{Tokens: 30}}) {
		t.Errorf("a thread of its own has the meter %+v", m)
	}
}

// TestTimeCountsOnce: of tasks beside each other, in whatever order they end, and not while nobody is at work.
func TestTimeCountsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		ran  [][2]int64
		want int64
	}{
		"beside each other": {[][2]int64{{1000, 1500}, {1010, 1900}, {1020, 1100}}, 900},
		"one after another": {[][2]int64{{1000, 1100}, {1100, 1300}, {1301, 1400}}, 399},
		"a wait between":    {[][2]int64{{1000, 1100}, {9000, 9100}}, 200},
		"backwards":         {[][2]int64{{1000, 900}, {1000, 1100}}, 100},
		"nobody knows":      {[][2]int64{{0, 0}}, 0},
	} {
		sends := make([]string, len(c.ran))
		for i := range sends {
			sends[i] = fmt.Sprintf(`{"node":"a","send":true,"arg":%d}`, i)
		}
		p := compiled(t, `{"version":1,"name":"g","nodes":[{"name":"a"},{"name":"s"}],"edges":[{"from":"__start__","to":"s"}]}`)
		l, err := p.Start(pregel.NewThread(), pregel.Input{Value: pregel.Value(`{}`)}, pregel.Options{RecursionLimit: 9, Budget: &pregel.Amounts{}}, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		var targets []pregel.Target
		for _, s := range sends {
			var to pregel.Target
			if err := json.Unmarshal([]byte(s), &to); err != nil {
				t.Fatal(err)
			}
			targets = append(targets, to)
		}
		l.Deliver(l.Ready()[0], pregel.Outcome{Command: pregel.Command{Goto: targets}})
		for i, task := range l.Ready() {
			l.Deliver(task, pregel.Outcome{Spent: &pregel.Spent{Began: c.ran[i][0], Ended: c.ran[i][1]}})
		}
		if l.Status() != pregel.StatusDone || l.Thread().Meter().Total().Millis != c.want {
			t.Errorf("%s: it stands at %v, took %d ms, not %d", name, l.Status(), l.Thread().Meter().Total().Millis, c.want)
		}
	}
}
