package tracing

import "go.opentelemetry.io/otel/attribute"

// The names of spans: of the kind of thing, with the name that a graph gave it. They are few.
const (
	RunName       = "run"
	SuperstepName = "superstep"
	TaskName      = "task"
	AttemptName   = "attempt"
	QuestionName  = "question"
	EffectName    = "effect"
	LookupName    = "lookup"
	JobName       = "job"
	SubJobName    = "subjob"
	PlanName      = "plan"
	UndoName      = "undo"
)

// The attributes. Their values are ids, names that graphs declare, and words of the engine: nothing that is stored of a thread.
const (
	GraphKey     = attribute.Key("superstep.graph")
	ThreadKey    = attribute.Key("superstep.thread")
	RunKey       = attribute.Key("superstep.run")
	StepKey      = attribute.Key("superstep.step")
	NodeKey      = attribute.Key("superstep.node")
	TaskKey      = attribute.Key("superstep.task")
	AttemptKey   = attribute.Key("superstep.attempt")
	ExecutionKey = attribute.Key("superstep.execution")
	OutcomeKey   = attribute.Key("superstep.outcome")
	QuestionKey  = attribute.Key("superstep.question")
	AboutKey     = attribute.Key("superstep.about")
	EffectKey    = attribute.Key("superstep.effect")
	EffectIDKey  = attribute.Key("superstep.effect.key")
	LostKey      = attribute.Key("superstep.lost")
	LeaderKey    = attribute.Key("superstep.leader")
	JobKey       = attribute.Key("superstep.job")
	SubJobKey    = attribute.Key("superstep.subjob")
	ErrorKey     = attribute.Key("error.type")
)
