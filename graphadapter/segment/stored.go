package segment

import "superstep.dev/graphadapter"

// StoredActivity is the type of the local activity that reads what a run's activities have stored with their heartbeats: a
// [StoredRequest] gives a [StoredReply]. No node's activity has such a name.
const StoredActivity = "superstep.stored"

// StoredRequest asks for what the heartbeats of a run's tasks, or of its segment, have stored.
type StoredRequest struct {
	Thread      string   `json:"thread"`
	Run         string   `json:"run"`
	ActivityIDs []string `json:"activity_ids"`
}

// StoredReply is what the server has of them, by the ids of their activities.
type StoredReply struct {
	// Stored has the activities that are under way: not those that have ended meanwhile, whose own word tells.
	Stored map[string]Stored `json:"stored,omitempty"`
	// Rest are the ids of those that did not fit, to be asked for again.
	Rest []string `json:"rest,omitempty"`
}

// Stored is what the server has of one activity.
type Stored struct {
	// Begun counts the executions that a worker began.
	Begun int32 `json:"begun,omitempty"`
	// Known is false when the server has nothing else: no heartbeat came.
	Known    bool                  `json:"known,omitempty"`
	Progress graphadapter.Progress `json:"progress,omitzero"`
	Record   []byte                `json:"record,omitempty"` // of a segment, see DecodeRecord
}

// Lost reports whether an execution was lost with its worker.
func (s *Stored) Lost() bool { return s.Progress.Lost || s.Begun > s.Progress.Accounted }

// maxStored bounds what a [StoredReply] brings, in bytes: a run keeps it as one event, of at most 2 MiB.
const maxStored = 1 << 20

// Page sorts what was found of the activities that the request asks for, of those sizes in bytes, into a reply and its Rest.
// One activity fits in any case.
func (r *StoredRequest) Page(found map[string]Stored, sizes map[string]int) StoredReply {
	reply := StoredReply{Stored: map[string]Stored{}}
	size := 0
	for _, id := range r.ActivityIDs {
		one, ok := found[id]
		if !ok {
			continue
		}
		if size += sizes[id]; size > maxStored && len(reply.Stored) > 0 {
			reply.Rest = append(reply.Rest, id)
			continue
		}
		reply.Stored[id] = one
	}
	return reply
}
