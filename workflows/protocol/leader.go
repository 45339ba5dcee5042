package protocol

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"superstep.dev/graphadapter/life"
	"superstep.dev/internal/clip"
	"superstep.dev/job"
)

// LeaderInput is the input of a leader's run.
type LeaderInput struct {
	Leader string  `json:"leader"`
	Job    job.Job `json:"job"`
	// Board is the job as an earlier run left it: one that this run recovers, or continues as a new one.
	Board *job.Board `json:"board,omitempty"`
	// Recover says that Board is of a job that stopped or failed, and how to go on.
	Recover *job.Recover `json:"recover,omitempty"`
	// Found is what the run finds around it, as in [GraphInput]; nil makes the run record what its first worker knows.
	Found *Found `json:"found,omitempty"`
	// ContinueAt says when the run is continued as a new one; nil for the defaults.
	ContinueAt *ContinueAt `json:"continue_at,omitempty"`
	// Grace is how long an attempt may take to end once it was told to, in milliseconds; then it is terminated. 0 means 2
	// minutes.
	Grace int64 `json:"grace_ms,omitempty"`
	// Taken are the latest requests by update that this run's predecessor took, where this run only continues it.
	Taken life.TakenList `json:"taken,omitempty"`
	// Trace is the span of who asked for the job, as in [GraphInput]; Began is when the run began, of those that are continued the
	// first, where somebody traces it.
	Trace string    `json:"trace,omitempty"`
	Began time.Time `json:"began,omitzero"`
}

// LeaderResult is what a leader's run leaves behind: the result of one whose job finished or was stopped, the detail of
// the error of one whose job failed.
type LeaderResult struct {
	Leader string     `json:"leader"`
	Board  *job.Board `json:"board"`
}

// RetrySubJob, ChangeExperts and RaiseBudget are what updates bring. By is who asked.
type (
	RetrySubJob struct {
		SubJob string `json:"subjob"`
		Lesson string `json:"lesson,omitempty"`
		By     string `json:"by,omitempty"`
	}
	ChangeExperts struct {
		Add    []job.Profile `json:"add,omitempty"`
		Remove []string      `json:"remove,omitempty"`
		By     string        `json:"by,omitempty"`
	}
	RaiseBudget struct {
		Budget job.Budget `json:"budget"`
		By     string     `json:"by,omitempty"`
	}
)

// ExpertRecord is what an attempt of a leader's subjob leaves in its own history, in the markers right before its last
// event: one with the Message, as the expert gave it, and behind it one with the Result. A parent's history repeats what
// its children return, and a leader has many, so it gets neither whole.
type ExpertRecord struct {
	Message *job.WorkflowMessage `json:"message,omitempty"`
	Result  *GraphResult         `json:"result,omitempty"`
}

// The bounds of what a message names, beside those of package job.
const (
	maxArtifacts     = 20
	maxArtifactBytes = 4 << 10 // of all together
)

// CheckedMessage is an expert's message, or that of an execution error that says why it counts for nothing: it says what cannot be
// so, or breaks the bounds.
func CheckedMessage(m job.WorkflowMessage) job.WorkflowMessage {
	problem := messageProblem(m)
	if problem == "" {
		return m
	}
	if m.Usage.Tokens < 0 || m.Usage.MicroUSD < 0 || m.Usage.Writes < 0 {
		m.Usage = job.Usage{Unknown: true}
	}
	return NoMessage(problem, m.Usage)
}

// NoMessage is an attempt whose expert said something that is no message.
func NoMessage(problem string, used job.Usage) job.WorkflowMessage {
	return BrokenMessage("the expert's message counts for nothing: "+problem, used)
}

// BrokenMessage is an attempt that ended without a word of its expert that counts.
func BrokenMessage(why string, used job.Usage) job.WorkflowMessage {
	why = clip.Text(why, job.MaxNote)
	return job.WorkflowMessage{Status: job.ExecutionError, Evaluation: why, Lesson: why, Usage: used}
}

// messageProblem says what is wrong with an expert's message, "" for nothing.
func messageProblem(m job.WorkflowMessage) string {
	known := []job.WorkflowStatus{job.Success, job.ExecutionError, job.InputDataError, job.TooComplicated}
	switch {
	case !slices.Contains(known, m.Status):
		return fmt.Sprintf("there is no status %q, only %q", clip.Text(string(m.Status), job.MaxID), known)
	case len(m.Output) > job.MaxOutput:
		return fmt.Sprintf("the output has %d bytes, the most is %d: keep it outside and return an artifact", len(m.Output), job.MaxOutput)
	case len(m.Evaluation) > job.MaxNote || len(m.Lesson) > job.MaxNote:
		return fmt.Sprintf("its evaluation has %d bytes and its lesson %d, the most is %d", len(m.Evaluation), len(m.Lesson), job.MaxNote)
	case len(m.Blames) > job.MaxDependencies:
		return fmt.Sprintf("it blames %d predecessors, nobody has more than %d", len(m.Blames), job.MaxDependencies)
	case slices.ContainsFunc(m.Blames, func(id string) bool { return len(id) > job.MaxID }):
		return fmt.Sprintf("the id of a predecessor has at most %d bytes", job.MaxID)
	case m.Usage.Tokens < 0 || m.Usage.MicroUSD < 0 || m.Usage.Writes < 0:
		return "nobody spends less than nothing"
	case len(m.Artifacts) > maxArtifacts:
		return fmt.Sprintf("it names %d artifacts, the most is %d", len(m.Artifacts), maxArtifacts)
	case artifactBytes(m.Artifacts) > maxArtifactBytes:
		return fmt.Sprintf("the names, URIs and kinds of its artifacts have at most %d bytes together", maxArtifactBytes)
	}
	// Text that JSON has to escape takes up to six times its length.
	if text, err := json.Marshal(m); err != nil || len(text) > MaxPayloadBytes {
		return fmt.Sprintf("it takes %d bytes to store, the most is %d: keep the output outside and return an artifact", len(text), MaxPayloadBytes)
	}
	return ""
}

func artifactBytes(all []job.Artifact) (n int) {
	for _, a := range all {
		n += len(a.Name) + len(a.URI) + len(a.Kind)
	}
	return n
}
