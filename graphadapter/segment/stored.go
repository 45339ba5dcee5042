package segment

import "superstep.dev/graphadapter"

// The types of the local activities that read what a run's activities have stored with their heartbeats. No node's
// activity has such a name.
const (
	// StoredActivity reads that of a segment: a StoredRequest gives a StoredProgress.
	StoredActivity = "superstep.stored"
	// StoredTasksActivity reads that of tasks: a StoredTasksRequest gives a StoredTasks.
	StoredTasksActivity = "superstep.stored-tasks"
)

// StoredRequest asks for what the heartbeats of a run's segment have stored.
type StoredRequest struct {
	Thread     string `json:"thread"`
	Run        string `json:"run"`
	ActivityID string `json:"activity_id"`
}

// StoredProgress is what a segment has stored, as the server has it.
type StoredProgress struct {
	// Begun counts the executions that a worker began; 0 also when the segment has ended, and its own word tells.
	Begun int32 `json:"begun,omitempty"`
	// Known is false when the server has nothing else: no heartbeat came.
	Known    bool     `json:"known,omitempty"`
	Progress Progress `json:"progress,omitzero"`
	Record   []byte   `json:"record,omitempty"` // see DecodeRecord
}

// StoredTasksRequest asks for what the heartbeats of tasks have stored, by the ids of their activities.
type StoredTasksRequest struct {
	Thread      string   `json:"thread"`
	Run         string   `json:"run"`
	ActivityIDs []string `json:"activity_ids"`
}

// StoredTasks is what the server has of them, by the ids of their activities.
type StoredTasks struct {
	// Tasks are those that are under way: not those that have ended meanwhile, whose own word tells.
	Tasks map[string]StoredTask `json:"tasks,omitempty"`
	// Rest are those that did not fit, to be asked for again.
	Rest []string `json:"rest,omitempty"`
}

// StoredTask is what the server has of one task.
type StoredTask struct {
	// Begun counts the executions that a worker began.
	Begun    int32                     `json:"begun,omitempty"`
	Progress graphadapter.NodeProgress `json:"progress,omitzero"`
}

// Lost reports whether an execution was lost with its worker.
func (t *StoredTask) Lost() bool { return t.Progress.Lost || t.Begun > t.Progress.Accounted }

// maxStoredTasks bounds what a [StoredTasks] brings, in bytes: a run keeps it as one event, of at most 2 MiB.
const maxStoredTasks = 1 << 20

// Page sorts what was found of the tasks that the request asks for, of those sizes in bytes, into a reply and its Rest. One
// task fits in any case.
func (r *StoredTasksRequest) Page(found map[string]StoredTask, sizes map[string]int) StoredTasks {
	reply := StoredTasks{Tasks: map[string]StoredTask{}}
	size := 0
	for _, id := range r.ActivityIDs {
		task, ok := found[id]
		if !ok {
			continue
		}
		if size += sizes[id]; size > maxStoredTasks && len(reply.Tasks) > 0 {
			reply.Rest = append(reply.Rest, id)
			continue
		}
		reply.Tasks[id] = task
	}
	return reply
}
