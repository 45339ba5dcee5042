package graphadapter

// StoredActivity is the type of the local activity that reads what a segment has stored. No node's activity has that name.
const StoredActivity = "superstep.stored"

// StoredRequest asks for what the heartbeats of a run's segment have stored.
type StoredRequest struct {
	Thread     string `json:"thread"`
	Run        string `json:"run"`
	ActivityID string `json:"activity_id"`
}

// StoredProgress is what a segment has stored, as the server has it.
type StoredProgress struct {
	// Known is false when the server has nothing: no heartbeat came, or the segment has ended, and its own word tells.
	Known    bool            `json:"known,omitempty"`
	Progress SegmentProgress `json:"progress,omitzero"`
	Record   []byte          `json:"record,omitempty"` // see DecodeRecord
}
