package figures

import (
	"slices"
	"strings"
)

// Kind says how a figure is kept.
type Kind string

const (
	// Counter only grows, until its process ends.
	Counter Kind = "counter"
	// Seconds is a histogram of durations.
	Seconds Kind = "histogram"
	// Gauge is how much there is, which nobody counts: it is looked up when somebody measures.
	Gauge Kind = "gauge"
)

// Figure is one metric.
type Figure struct {
	// Name is what Temporal's metrics handler is given. See [Figure.Exported].
	Name string
	Kind Kind
	// Labels are set on every count, in this order behind "graph", which all have.
	Labels []string
	// Help says what is counted, and the words of a label that has few.
	Help string
	// Buckets are the upper bounds of a histogram, in seconds.
	Buckets []float64
	// Unit is "s" for a gauge of seconds.
	Unit string
}

// Exported is the name that Prometheus shows.
func (f *Figure) Exported() string {
	switch {
	case f.Kind == Seconds, f.Unit == "s":
		return f.Name + "_seconds"
	case f.Kind == Gauge:
		return f.Name
	}
	return f.Name + "_total"
}

// The labels.
const (
	graphLabel = "graph"
	nodeLabel  = "node"
)

var (
	pauses  = []float64{0.1, 0.25, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10, 15, 30, 60, 300}
	waiting = []float64{1, 10, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 3 * 24 * 3600, 7 * 24 * 3600, 30 * 24 * 3600}
)

// Figures of runs, counted by the worker that decides.
var (
	RunsBegun  = &Figure{Name: "superstep_runs_begun", Kind: Counter, Help: "Runs that began, those that continue a long one left out."}
	RunsEnded  = &Figure{Name: "superstep_runs_ended", Kind: Counter, Labels: []string{"status"}, Help: "Runs that ended: finished, failed, cancelled."}
	Supersteps = &Figure{Name: "superstep_supersteps", Kind: Counter, Help: "Supersteps that ended, those of subgraphs left out."}
	Tasks      = &Figure{Name: "superstep_tasks", Kind: Counter, Labels: []string{nodeLabel, "outcome"},
		Help: "Tasks of nodes that ended: done, cached, asked (it waits for an answer), failed."}
	QuestionsAsked = &Figure{Name: "superstep_questions_asked", Kind: Counter, Labels: []string{"about"},
		Help: "Questions that people were asked: question, approval, doubt (what became of a write or of a lost worker's task)."}
	QuestionAge = &Figure{Name: "superstep_question_age", Kind: Seconds, Labels: []string{"about"}, Buckets: waiting,
		Help: "How old a question was when it was answered, decided or withdrawn."}
	Approvals = &Figure{Name: "superstep_approvals", Kind: Counter, Labels: []string{"verdict"},
		Help: "Approvals that were decided: approve, reject, edit; by silence: expired; not asked any more: withdrawn."}
	EffectsReconciled = &Figure{Name: "superstep_effects_reconciled", Kind: Counter, Labels: []string{"effect", "how"},
		Help: "Writes of which one call was not enough to know: looked_up (the outside was asked), repeated (called again under its key), ruled (a person said)."}
	EffectsUnknown = &Figure{Name: "superstep_effects_unknown", Kind: Counter, Labels: []string{"effect"},
		Help: "Writes of which no program can tell what became of them."}
	EffectsCompensated = &Figure{Name: "superstep_effects_compensated", Kind: Counter, Labels: []string{"effect"}, Help: "Writes that were undone."}
	Takeovers          = &Figure{Name: "superstep_takeovers", Kind: Counter, Labels: []string{"about"},
		Help: "Times that a person ruled where a recovery could not: effect, worker (a task that lost too many), retry (of a run that failed)."}
	Segments      = &Figure{Name: "superstep_segments", Kind: Counter, Labels: []string{"how"}, Help: "Segments that ended: returned, or lost with what they had stored."}
	HistoryEvents = &Figure{Name: "superstep_history_events", Kind: Counter, Help: "Events by which the histories of runs grew."}
	HistoryBytes  = &Figure{Name: "superstep_history_bytes", Kind: Counter, Help: "Bytes by which the histories of runs grew."}
	RunsContinued = &Figure{Name: "superstep_runs_continued", Kind: Counter, Help: "Long runs that went on as a new one, with an empty history."}
	LimitsNear    = &Figure{Name: "superstep_limits_near", Kind: Counter, Labels: []string{"limit"}, Help: "Runs that came to four fifths of a limit at which they end: history_events, history_bytes; state_bytes of what a run's last event takes."}
)

// Figures of executions, counted by the worker that executes.
var (
	RecoveriesBegun = &Figure{Name: "superstep_recoveries_begun", Kind: Counter, Help: "Executions that began where one before them was lost with its worker."}
	Recoveries      = &Figure{Name: "superstep_recoveries", Kind: Counter, Labels: []string{"outcome"},
		Help: "Those of them that ended: went_on (with an outcome), given_back (to be executed again)."}
	RecoveryTime = &Figure{Name: "superstep_recovery", Kind: Seconds, Buckets: pauses,
		Help: "From the last sign of life of a lost worker until its task or segment runs again."}
	Duplicates = &Figure{Name: "superstep_effect_duplicates", Kind: Counter, Labels: []string{"effect"},
		Help: "Duplicate writes that were found: a call came back to an execution that had lost its task, or had called again, and the outside has another receipt under the key."}
)

// Figures of all threads that the server's index lists. Each worker tells the same of the graphs that it serves.
var (
	QuestionsOpen = &Figure{Name: "superstep_questions_open", Kind: Gauge, Labels: []string{"about"},
		Help: "Questions that wait for people now, as the server's index lists them: the same from every worker of the graph (`max`, not `sum`)."}
	OldestQuestion = &Figure{Name: "superstep_oldest_question_age", Kind: Gauge, Unit: "s", Labels: []string{"about"},
		Help: "How old the oldest of them is; 0 when none waits any more."}
)

// All are the figures, in the order of the documentation.
func All() []*Figure {
	return []*Figure{
		RunsBegun, RunsEnded, RunsContinued, Supersteps, Tasks, Segments, QuestionsAsked, QuestionAge, QuestionsOpen, OldestQuestion, Approvals,
		EffectsReconciled, EffectsUnknown, EffectsCompensated, RecoveriesBegun, Recoveries, RecoveryTime, Duplicates, Takeovers,
		HistoryEvents, HistoryBytes, LimitsNear,
	}
}

// Row is a figure's line in the documentation.
func (f *Figure) Row() string {
	labels := slices.Concat([]string{graphLabel}, f.Labels)
	return "| `" + f.Exported() + "` | " + string(f.Kind) + " | " + strings.Join(labels, ", ") + " | " + f.Help + " |"
}
