// Package protocol is what clients and workers say to each other: the names of workflows, signals, updates, queries, memo fields,
// search attributes and error types, and the data that goes with each. Whoever has this package, or docs/wire.md, needs none of the
// workflows to start a run, answer its questions and read where it stands.
package protocol

import "superstep.dev/graphadapter/life"

// The workflows. A thread is a workflow id: its runs are workflows of the type GraphWorkflow.
const (
	GraphWorkflow  = "superstep.graph"
	LeaderWorkflow = "superstep.leader"
	DeskWorkflow   = "superstep.desk"
	// NoticesWorkflow tells what runs that have ended have not told yet. Runs start it, nobody else does.
	NoticesWorkflow = "superstep.notices"
	// ErasureWorkflow has a thread's id while its values are removed. No worker runs it.
	ErasureWorkflow = "superstep.erasure"
)

// The updates that a run of a graph takes.
const (
	UpdateResume = "resume"
	// UpdateInvoke gives a waiting run something new to do: input, or nothing to go on where it stands.
	UpdateInvoke = life.NameInvoke
	// UpdateState writes to the thread's state from outside, while the run waits.
	UpdateState = "update_state"
	// UpdateRetry lets a run that failed and was held open go on.
	UpdateRetry = "retry"
	// UpdateDrain asks a run to stop before its next superstep.
	UpdateDrain = "drain"
	// UpdatePause pauses a run, or lets a paused one go on; so does SignalPause while no worker is there to reply.
	UpdatePause = "pause"
	// UpdateCancel ends a run, as SignalCancel does: for those who are to be told whether they may.
	UpdateCancel = "cancel"
	// UpdateEvent sends an event to the thread; so does SignalEvent while no worker is there to reply.
	UpdateEvent = "event"
	// UpdateRest returns when the run rests or ends: with a RestRequest or without an argument, a RestReply. Three such updates are taken at once, and
	// none by a run that has taken as many updates as it should: who is refused with ErrTypeBusy follows the history.
	UpdateRest = "rest"
)

// The signals that a run of a graph takes: stored while no worker is there, and without a reply.
const (
	SignalResume = "resume"
	SignalPause  = "pause"
	SignalEvent  = "event"
	// SignalCancel ends a run in the way that its CancelRequest says. A plain cancellation by Temporal is CancelKeep.
	SignalCancel = "cancel"
	// SignalViewed notes that somebody has looked at an approval's question.
	SignalViewed = "superstep.viewed"
)

// The queries that a run of a graph answers.
const (
	// QueryState returns a run's State, and fails with StateTooLarge when that is more than one reply takes.
	QueryState = "state"
	// QueryOutline returns a State without values: of its checkpoint the step alone, of questions who asks, and no ledgers.
	QueryOutline = "outline"
	// QueryQuestion returns a QuestionReply about the open question of an id, or of an unambiguous start of one.
	QueryQuestion = "question"
	QueryHistory  = "history"
	QueryGraph    = "graph"
	// QueryHandoff returns what a new run needs to continue a thread whose last run closed without a word.
	QueryHandoff = "handoff"
	// QueryAudit returns what a run knows of the thread's audit: an AuditReply.
	QueryAudit = "audit"
)

// QueryAdmit asks a desk whether its worker serves a graph and takes an input or updates: an AdmitRequest gives an AdmitReply.
const QueryAdmit = "admit"

// The updates that a leader takes.
const (
	// UpdateJobStop ends a job's attempts and then its run: it returns once all have ended. A job.Halt gives a job.View.
	UpdateJobStop = "job.stop"
	// UpdateJobFail does the same, and the job has failed then, with the subjob that is named. A job.Halt gives a job.View.
	UpdateJobFail = "job.fail"
	// UpdateJobRetry does one subjob again, and what depends on it. [RetrySubJob] gives a job.View.
	UpdateJobRetry = "job.retry"
	// UpdateJobPlan decides on the plan that waits for approval. A job.Decision gives a job.View.
	UpdateJobPlan = "job.plan"
	// UpdateJobExperts changes who may be assigned to what is planned from now on. [ChangeExperts] gives a job.View.
	UpdateJobExperts = "job.experts"
	// UpdateJobBudget raises what a job may spend. [RaiseBudget] gives a job.View.
	UpdateJobBudget = "job.budget"
)

// The queries that a leader answers: QueryJob with a job.View, QueryBoard with the job.Board, QueryJobEvents with the
// job.Events behind a number.
const (
	QueryJob       = "job"
	QueryBoard     = "board"
	QueryJobEvents = "job_events"
)

// The memo fields of a run.
const (
	// MemoGraph is its graph's name, where the namespace does not have AttributeGraph.
	MemoGraph = "graph"
	// MemoStart tells the one call that started a run from others that tried; absent where an update of that id came with the start.
	MemoStart = "start"
	// MemoBegan is when the first of the runs began that are continued as new ones, a time.Time; absent in that one itself.
	MemoBegan = "began"
	// MemoPause is the run's [Pause], an empty one once it goes on again.
	MemoPause = "pause"
	// MemoFull says whether the run keeps as many events as it may, a bool: none is stored for it by SignalEvent then.
	MemoFull = "superstep.full"
	// MemoQuestions holds a run's [QuestionsNote]. It is what was open last: AttributeQuestions says whether anything is.
	MemoQuestions = "superstep.questions"
)

// The custom search attributes of runs. A server that lacks them is served without.
const (
	AttributeGraph     = "SuperstepGraph"
	AttributeStatus    = "SuperstepStatus"
	AttributeNodes     = "SuperstepNodes"
	AttributeQuestions = "SuperstepQuestions"
	AttributeParent    = "SuperstepParent"
)

// The custom search attributes of the questions that a run has open. A server that lacks one of them is served without all
// three, and without the memo.
const (
	// AttributeApprovers are the people, and as "group:NAME" the groups, who are asked.
	AttributeApprovers = "SuperstepApprovers"
	// AttributeDue is the first deadline, and AttributeRisk the highest risk.
	AttributeDue  = "SuperstepDue"
	AttributeRisk = "SuperstepRisk"
)

// AnyApprover is in AttributeApprovers of a run that asks more people than there is room for.
const AnyApprover = "*"

// The types of the application errors with which messages are refused and runs fail.
const (
	// ErrTypeBadInput: a run could not begin with what it was given; its message says what to send.
	ErrTypeBadInput        = "superstep.BadInput"
	ErrTypeNodeFailed      = "superstep.NodeFailed"
	ErrTypeRunFailed       = "superstep.RunFailed"
	ErrTypeUnknownQuestion = "superstep.UnknownQuestion"
	ErrTypeAnswered        = "superstep.AlreadyAnswered"
	ErrTypeBadAnswer       = "superstep.BadAnswer"
	// ErrTypeNotAllowed: a reply to an approval does not count, or the rules do not let who asks do something. Its detail is an
	// AnswerRefusal.
	ErrTypeNotAllowed = "superstep.AnswerNotAllowed"
	ErrTypeBusy       = "superstep.RunBusy"
	// ErrTypeInputWanted: the run has not begun with the request that leaves out its input; send it with the input.
	ErrTypeInputWanted = "superstep.InputWanted"
	// ErrTypeNotFailed: there is nothing to retry.
	ErrTypeNotFailed = "superstep.NotFailed"
	// ErrTypeBadUpdate: an update of the state cannot be applied; nothing was.
	ErrTypeBadUpdate = "superstep.BadUpdate"
	// ErrTypeJobFailed: the job has failed; the error's detail is a [LeaderResult].
	ErrTypeJobFailed = "superstep.JobFailed"
	// ErrTypeJobRefused: a message does not fit where the job stands; nothing was changed. Its detail is a job.RefusedError.
	ErrTypeJobRefused = "superstep.JobRefused"
)

// StateTooLarge begins the error of a QueryState of a run that has more than one reply takes. The run's history has it.
const StateTooLarge = "the run's state is more than one reply takes"
