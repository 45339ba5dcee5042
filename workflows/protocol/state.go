package protocol

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
)

// The statuses of a run, as queries and search attributes show them. Each has one cause, so that nobody takes a run that
// somebody paused for one that failed.
const (
	StatusRunning = "running"
	// StatusWaiting: it waits for people to answer.
	StatusWaiting = "waiting"
	// StatusWaitingEvent: it waits for events, and for no person.
	StatusWaitingEvent = "waiting_event"
	// StatusPaused: somebody paused it; what was under way has ended.
	StatusPaused = "paused"
	// StatusStopped: it stands at a breakpoint, or was drained.
	StatusStopped  = "stopped"
	StatusFinished = "finished"
	// StatusFailed, StatusTimedOut and StatusOutOfBudget: it failed, for a reason of its own, because a bound on time was
	// over, or because a bound on what it may use was reached. See FailureStatus.
	StatusFailed      = "failed"
	StatusTimedOut    = "timed_out"
	StatusOutOfBudget = "out_of_budget"
	StatusCancelled   = "cancelled"
)

// FailureStatus is the status of a run that failed for that reason; nil is a failure that nobody could explain.
func FailureStatus(failure *pregel.NodeError) string {
	if failure == nil {
		return StatusFailed
	}
	switch failure.Type {
	case "Timeout", "StepTimeout", "EventTimeout", "AnswerTimeout":
		return StatusTimedOut
	case "GraphRecursionError", "HistoryFull", "OutOfBudget":
		return StatusOutOfBudget
	}
	return StatusFailed
}

// State is the answer to QueryState.
type State struct {
	Graph  string `json:"graph"`
	Status string `json:"status"`
	// Durability and Fused are the mode that the run runs in, "" for sync.
	Durability graphadapter.Durability `json:"durability,omitempty"`
	Fused      bool                    `json:"fused,omitempty"`
	// Budget is what the thread has spent of its budget, nil without one.
	Budget *pregel.Meter `json:"budget,omitempty"`
	// Drained is why the run was asked to stop, when that is why it stands still.
	Drained string `json:"drained,omitempty"`
	// Paused says who paused the run, also while the tasks that were under way end.
	Paused *Pause `json:"paused,omitempty"`
	// Failure is why a run failed that is held open; nil for any other.
	Failure  *pregel.NodeError `json:"failure,omitempty"`
	Snapshot pregel.Snapshot   `json:"snapshot"`
	// Made is when the snapshot's checkpoint was made, in milliseconds since 1970; 0 when that is not known any more.
	Made    int64    `json:"made_ms,omitempty"`
	Running []string `json:"running,omitempty"`
	// Output names the channels of the snapshot that are the graph's output; nil means all.
	Output []string `json:"output,omitzero"`
	// Questions wait for an answer of a person.
	Questions []pregel.OpenQuestion `json:"questions,omitempty"`
	// Approvals are what is known of those of the Questions that ask for approvals.
	Approvals []PendingApproval `json:"approvals,omitempty"`
	// Waits are for events; Due is when those with a timeout are over, and when the time to answer an approval is.
	Waits []pregel.OpenQuestion `json:"waits,omitempty"`
	Due   []Due                 `json:"due,omitempty"`
	// Kept are the events that nobody has waited for yet, without their values.
	Kept []KeptEvent `json:"kept,omitempty"`
	// Answered are the latest answers taken.
	Answered []Answered `json:"answered,omitempty"`
	// Refused are the latest answers by signal that were not taken, with the reason: a signal gets no reply.
	Refused []Refused `json:"refused,omitempty"`
	// Cancel is how the run is being cancelled, while it undoes its effects.
	Cancel *Cancellation `json:"cancel,omitempty"`
	// Ledgers are what the tasks of the newest superstep did outside.
	Ledgers []pregel.TaskLedger `json:"ledgers,omitempty"`
}

// Passing says that a reply is of the moment: it is not kept in a storage, however large it is.
func (State) Passing() bool { return true }

// QuestionReply is the answer to QueryQuestion.
type QuestionReply struct {
	// State is that of QueryOutline. Its questions are whole as far as a reply takes them: if not, all of them have one line
	// of their text as value.
	State
	// Question is the one that was asked about; nil when none is open, or several can be meant.
	Question *pregel.OpenQuestion `json:"question,omitempty"`
}

// Matching returns the ids of the open questions that an id, or the start of one, can mean: of a whole id that one.
func Matching(open []pregel.OpenQuestion, prefix string) []string {
	var out []string
	for _, q := range open {
		if q.ID == prefix {
			return []string{q.ID}
		}
		if strings.HasPrefix(q.ID, prefix) {
			out = append(out, q.ID)
		}
	}
	return out
}

// Answered is a question that got its answer.
type Answered = life.Answered

// Refused is an answer or an event by signal that was not taken, or an event that was kept and fits none who waits.
type Refused = life.Refused

// Due is when a wait for an event is over.
type Due = life.Due

// KeptEvent is an event that nobody has waited for yet.
type KeptEvent = life.KeptEvent

// Line is one checkpoint in the thread's history.
type Line struct {
	Step       int           `json:"step"`
	Checkpoint string        `json:"checkpoint"`
	Parent     string        `json:"parent,omitempty"`
	Source     pregel.Source `json:"source"`
	Ran        []string      `json:"ran,omitempty"`
	Wrote      []string      `json:"wrote,omitempty"`
	Next       []string      `json:"next,omitempty"`
	// Run is the id of the run that made it, and At when it did, in milliseconds since 1970.
	Run string `json:"run,omitempty"`
	At  int64  `json:"at_ms,omitempty"`
}

func ActivityID(task *pregel.Task) string {
	id := fmt.Sprintf("%d/%s/%.8s", task.Step, task.Path, task.Digest)
	if task.Namespace != "" {
		id = task.Namespace + "|" + id
	}
	return id
}

// StepOf returns the superstep that a task's activity is of, by its id; 0 for other activities.
func StepOf(activityID string) int {
	id := activityID[strings.LastIndexByte(activityID, '|')+1:]
	first, _, _ := strings.Cut(id, "/")
	step, _ := strconv.Atoi(first)
	return step
}

// QuestionsNote is what lists show of a run's open questions. It goes through the data converter, so a codec protects it.
type QuestionsNote struct {
	// Questions are the first 20, in task order, and More is how many others there are.
	Questions []QuestionNote `json:"questions"`
	More      int            `json:"more,omitempty"`
}

// QuestionNote is one open question. What only approvals have is zero in others.
type QuestionNote struct {
	ID   string `json:"id"`
	Node string `json:"node"`
	// At is when it was asked, zero when nobody knows any more. About is what figures count it as: approval, doubt, or "" for any other.
	At    time.Time `json:"at,omitzero"`
	About string    `json:"about,omitempty"`
	// Asks is the question in one line of at most 300 bytes.
	Asks      string           `json:"asks"`
	Risk      approval.Risk    `json:"risk,omitempty"`
	Due       time.Time        `json:"due,omitzero"`
	Silence   approval.Silence `json:"silence,omitempty"`
	Approvers []string         `json:"approvers,omitempty"`
	// Votes are the approvals so far, of the Need that it takes.
	Votes int `json:"votes,omitempty"`
	Need  int `json:"need,omitempty"`
}
