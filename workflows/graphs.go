package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/job"
	"superstep.dev/workflows/protocol"
)

// Graphs are the graphs that a worker serves, and the workflows over them.
type Graphs struct {
	byName map[string]*graphadapter.Graph
	// reducers are each graph's custom reducers, its subgraphs' included.
	reducers map[string]map[string]pregel.Reducer
	// sink is told of everything that happens to a run's thread; nil in workers.
	sink graphadapter.Recorder
	// past is set while a past run is read: it is the program of that run.
	past func(workflow.Context, *protocol.GraphInput) (*pregel.Program, beginning)
	// values is told of what goes by reference; it may be nil.
	values Values
	// notices says that the worker tells people outside of questions.
	notices bool
	// find says what a run finds around it; nil says nothing.
	find func(namespace string) (protocol.Found, error)
	// governs says whether what is done to runs is under rules; nil says no.
	governs func() bool
	// may says whether the gate of this worker would allow something; nil says nothing.
	may func(approval.ControlCheck) approval.Ruling
	// heads signs the ends of audits; nil in workers without a key for that.
	heads approval.HeadSigner
	// leaders are those that the worker serves, by their names.
	leaders map[string]Leader
}

// Notifying makes the desk say that the worker tells people outside of questions, so that runs which begin from now on do.
// It returns g.
func (g *Graphs) Notifying(notices bool) *Graphs {
	g.notices = notices
	return g
}

// Signing makes the runs sign the ends of their audits when they are asked for them. It returns g.
func (g *Graphs) Signing(s approval.HeadSigner) *Graphs {
	g.heads = s
	return g
}

// NewGraphs returns the workflows over these graphs. sink is told of everything that happens to every run's thread, at
// the id of the event with which the workflow task started; it is nil in workers. To read one past run see [NewReader].
func NewGraphs(graphs []*graphadapter.Graph, sink graphadapter.Recorder) *Graphs {
	g := &Graphs{byName: map[string]*graphadapter.Graph{}, reducers: map[string]map[string]pregel.Reducer{}, sink: sink}
	for _, graph := range graphs {
		g.byName[graph.Spec.Name] = graph
		g.reducers[graph.Spec.Name] = graph.AllReducers()
	}
	return g
}

// Finding makes the runs ask find, in the namespace that they are in, what a run finds around it. It must not take longer than a
// second; an error makes the workflow task fail, which the server repeats. Without it they find nothing. It returns g.
func (g *Graphs) Finding(find func(namespace string) (protocol.Found, error)) *Graphs {
	g.find = find
	return g
}

// Leader is a leader as a worker serves it: its name, and whom its jobs may be assigned to.
type Leader struct {
	Name    string
	Experts []job.Profile
}

// Leading makes the desk know the leaders that the worker serves. It returns g.
func (g *Graphs) Leading(leaders ...Leader) *Graphs {
	g.leaders = map[string]Leader{}
	for _, l := range leaders {
		g.leaders[l.Name] = l
	}
	return g
}

func (g *Graphs) leaderNames() []string {
	names := workflow.DeterministicKeys(g.leaders)
	slices.Sort(names)
	return names
}

func (g *Graphs) names() []string {
	names := workflow.DeterministicKeys(g.byName)
	slices.Sort(names)
	return names
}

// Governing says by governs whether what is done to runs is under rules now. may is asked by the desk whether something would
// be allowed, so that no run begins for what its gate refuses; it must not take longer than a query may. It returns g.
func (g *Graphs) Governing(governs func() bool, may func(approval.ControlCheck) approval.Ruling) *Graphs {
	g.governs, g.may = governs, may
	return g
}

// Values is told of the values that runs send by reference. Its methods must not block, and nobody may change v.
type Values interface {
	// Sent: v is sent by reference, in a moment.
	Sent(digest string, v pregel.Value)
	// Passed: a run that is replayed comes by where it sent v. Nobody has needed its digest yet.
	Passed(v pregel.Value)
}

// Telling makes the runs tell of the values that they send by reference, so that a worker need not look far for them.
// It returns g.
func (g *Graphs) Telling(v Values) *Graphs {
	g.values = v
	return g
}

// beginning is what a run learns from its first worker. It is part of the run's history, so that a later deploy does not change
// the run.
type beginning struct {
	Spec  *pregel.Spec    `json:"spec,omitempty"`
	Found *protocol.Found `json:"found,omitempty"`
	// Problem says why the graph does not take the run's input, "" when it does.
	Problem string `json:"problem,omitempty"`
}
