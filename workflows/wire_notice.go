package workflows

import (
	"time"

	"superstep.dev/approval"
)

// NoticesWorkflow tells what runs that have ended have not told yet.
const NoticesWorkflow = "superstep.notices"

// NoticeState is what a run knows of what people outside are told, for the run that continues it.
type NoticeState struct {
	// Known are the open questions that people have been told of, or are being told.
	Known  []string `json:"known,omitempty"`
	Untold []Untold `json:"untold,omitempty"`
}

// Untold is a notice that is told until then.
type Untold struct {
	approval.Notice
	Until time.Time `json:"until"`
}
