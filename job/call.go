package job

const (
	// PlanActivity is the type of the activity that asks a leader's planner: a [PlanCall] gives a [PlanReply].
	PlanActivity = "superstep.plan"
	// EndActivity is the type of the activity that ends an attempt which does not end when it is told to: an [EndCall] gives
	// nothing. One that has ended stays as it is.
	EndActivity = "superstep.end"
)

// PlanCall asks a leader's planner.
type PlanCall struct {
	Leader  string      `json:"leader"`
	Request PlanRequest `json:"request"`
}

// PlanReply is a plan, or why what the planner said is none.
type PlanReply struct {
	Draft *Draft        `json:"draft,omitempty"`
	Bad   *BadPlanError `json:"bad,omitempty"`
	Usage Usage         `json:"usage,omitzero"`
}

// EndCall says which run of a thread is to end, and why.
type EndCall struct {
	Thread string `json:"thread"`
	Reason string `json:"reason"`
}
