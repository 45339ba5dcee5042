package workflows

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/job"
	"superstep.dev/workflows/protocol"
)

// Graphs are the graphs that a worker serves, and the workflows over them.
type Graphs struct {
	cfg    Config
	byName map[string]*graphadapter.Graph
	// reducers are each graph's custom reducers, its subgraphs' included.
	reducers map[string]map[string]pregel.Reducer
	// programs are the graphs' compiled Specs, and pictures what is drawn of them.
	programs map[string]*pregel.Program
	pictures map[*pregel.Program]string
	// past is set while a past run is read: it is the program of that run.
	past func(workflow.Context, *protocol.GraphInput) (*pregel.Program, beginning)
}

// Config is what the runs of a worker have around them. All of it may be left out.
type Config struct {
	// Sink is told of everything that happens to every run's thread, at the id of the event with which the workflow task
	// started. Workers have none. To read one past run see [NewReader].
	Sink graphadapter.Recorder
	// Values is told of what goes by reference, so that a worker need not look far for it.
	Values Values
	// Notices says that the worker tells people outside of questions, so that runs which begin from now on do.
	Notices bool
	// Find says what a run finds around it, in the namespace that it is in. It must not take longer than a second; an error makes
	// the workflow task fail, which the server repeats.
	Find Find
	// Spans is told of what runs do; nil for nobody.
	Spans Spans
	// Governs says whether what is done to runs is under rules now. May is asked by the desk whether something would be allowed,
	// so that no run begins for what its gate refuses; it must not take longer than a query may.
	Governs func() bool
	May     func(approval.ControlCheck) approval.Ruling
	// Heads signs the ends of audits when runs are asked for them.
	Heads approval.HeadSigner
	// Leaders are the leaders that the worker serves, for the desk.
	Leaders []Leader
	// LostAfter is after how much silence a worker is taken for lost; 0 for [DefaultLostAfter].
	LostAfter time.Duration
	// Late is how late workflow tasks come to the worker now; nil for never. It must not block.
	Late func() time.Duration
	// NextTask has the next workflow task of a thread's run follow the one that it is in. It is called where a worker has said that it can
	// ([segment.Result].Follows), and must not block.
	NextTask func(namespace, thread string)
}

// Leader is a leader as a worker serves it: its name, and whom its jobs may be assigned to.
type Leader struct {
	Name    string
	Experts []job.Profile
}

// Find says what a run finds around it in a namespace; nil finds nothing.
type Find func(namespace string) (protocol.Found, error)

// In is what a run of that namespace finds. An error makes the workflow task fail.
func (f Find) In(namespace string) *protocol.Found {
	if f == nil {
		return &protocol.Found{}
	}
	found, err := f(namespace)
	if err != nil {
		panic(fmt.Sprintf("this worker does not know which search attributes the namespace %q has: %v", namespace, err))
	}
	return &found
}

// Values is told of the values that runs send by reference. Its methods must not block, and nobody may change v.
type Values interface {
	// Sent: v is sent by reference, in a moment.
	Sent(digest string, v pregel.Value)
	// Passed: a run that is replayed comes by where it sent v. Nobody has needed its digest yet.
	Passed(v pregel.Value)
}

// NewGraphs returns the workflows over these graphs.
func NewGraphs(graphs []*graphadapter.Graph, cfg Config) *Graphs {
	cfg.LostAfter = cmp.Or(cfg.LostAfter, DefaultLostAfter)
	if cfg.Late == nil {
		cfg.Late = func() time.Duration { return 0 }
	}
	g := &Graphs{cfg: cfg, byName: map[string]*graphadapter.Graph{}, reducers: map[string]map[string]pregel.Reducer{},
		programs: map[string]*pregel.Program{}, pictures: map[*pregel.Program]string{}}
	for _, graph := range graphs {
		g.byName[graph.Spec.Name] = graph
		g.reducers[graph.Spec.Name] = graph.AllReducers()
		if program, err := graph.Program(); err == nil { // else each run fails to compile it, which says so
			g.programs[graph.Spec.Name], g.pictures[program] = program, pictureOf(program)
		}
	}
	return g
}

func (g *Graphs) names() []string {
	names := workflow.DeterministicKeys(g.byName)
	slices.Sort(names)
	return names
}

// beginning is what a run learns from its first worker. It is part of the run's history, so that a later deploy does not change
// the run.
type beginning struct {
	Spec  *pregel.Spec    `json:"spec,omitempty"`
	Found *protocol.Found `json:"found,omitempty"`
	// Problem says why the graph does not take the run's input, "" when it does.
	Problem string `json:"problem,omitempty"`
}
