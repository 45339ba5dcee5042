package research

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"superstep.dev/examples/research/figures"
	"superstep.dev/examples/research/store"
	"superstep.dev/job"
)

// birdsArtifact is the name of the table that experts hand on by reference.
const birdsArtifact = "birds"

// Loaded is the loader's output.
type Loaded struct {
	Birds   int            `json:"birds"`
	Species map[string]int `json:"species"` // birds of each
	// Problems are the lines that do not tell everything, the first of them: at most [MaxProblems] of Incomplete.
	Problems   []figures.Problem `json:"problems"`
	Incomplete int               `json:"incomplete"`
}

// MaxProblems bounds the problems that a loader reports one by one.
const MaxProblems = 20

// TooMany is the analyst's output when it is asked for more than one species: one subjob for each of them would do.
type TooMany struct {
	Species []string `json:"species"`
}

// Review is the critic's output: what it has checked, and found right.
type Review struct {
	Analyses []figures.Analysis `json:"analyses"`
	Figures  int                `json:"figures"`
}

// message is a message with a value as its output.
func message(status job.WorkflowStatus, output any) (job.WorkflowMessage, error) {
	text, err := json.Marshal(output)
	if err != nil {
		return job.WorkflowMessage{}, fmt.Errorf("encode the output: %w", err)
	}
	return job.WorkflowMessage{Status: status, Output: string(text)}, nil
}

// unusable sends predecessors back to work; blames nobody in particular when none is named.
func unusable(evaluation, lesson string, blames ...string) job.WorkflowMessage {
	return job.WorkflowMessage{Status: job.InputDataError, Evaluation: evaluation, Lesson: lesson, Blames: blames}
}

// birdsOf finds the table among what predecessors handed on, and what belongs to the job.
func birdsOf(a job.Assignment) (job.Artifact, bool) {
	for _, in := range a.Inputs {
		for _, artifact := range in.Artifacts {
			if artifact.Name == birdsArtifact {
				return artifact, true
			}
		}
	}
	return job.Artifact{}, false
}

// noBirds says that no table was handed on.
func noBirds() job.WorkflowMessage {
	return unusable("no input refers to a table of birds", "Hand on the table that the loader made, as the artifact "+birdsArtifact+".")
}

// readBirds reads a table that the loader has checked.
func readBirds(s *store.Store, from job.Artifact) (figures.Table, error) {
	text, err := s.Read(from.URI)
	if err != nil {
		return nil, err
	}
	birds, _, err := figures.ReadTable(bytes.NewReader(text))
	return birds, err
}

// decoded reads the inputs whose outputs are a T, with the subjobs that they are from.
func decoded[T any](a job.Assignment, real func(T) bool) (values []T, subjobs []string) {
	for _, in := range a.Inputs {
		var value T
		d := json.NewDecoder(strings.NewReader(in.Text))
		d.DisallowUnknownFields()
		if d.Decode(&value) == nil && real(value) {
			values, subjobs = append(values, value), append(subjobs, in.SubJob)
		}
	}
	return values, subjobs
}
