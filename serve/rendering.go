package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
)

// messagesReducer is the reducer of the channels that hold conversations.
const messagesReducer = "messages/v1"

// channelsOf are the channels of a graph, and of those nested in it, that hold conversations: to clients they are one kind of field.
func channelsOf(spec *pregel.Spec, into map[string]bool) map[string]bool {
	if into == nil {
		into = map[string]bool{}
	}
	for _, c := range spec.Channels {
		if c.Reducer == messagesReducer {
			into[c.Name] = true
		}
	}
	for _, sub := range spec.Subgraphs {
		channelsOf(sub, into)
	}
	return into
}

// shown is an object of channels as clients see it: its messages are LangChain's.
func shown(values map[string]json.RawMessage, conversations map[string]bool) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(values))
	for name, v := range values {
		if conversations[name] {
			v = messagesOut(v)
		}
		out[name] = v
	}
	return out
}

func messagesOut(v json.RawMessage) json.RawMessage {
	var all []json.RawMessage
	if json.Unmarshal(v, &all) != nil {
		return messageOut(v)
	}
	for i, m := range all {
		all[i] = messageOut(m)
	}
	if all == nil {
		return v
	}
	return raw(all)
}

// shownJSON is shown for what is an object as JSON, or a list of such; anything else stays.
func shownJSON(v json.RawMessage, conversations map[string]bool) json.RawMessage {
	if len(conversations) == 0 {
		return v
	}
	var one object
	if json.Unmarshal(v, &one) == nil && one != nil {
		return raw(shown(one, conversations))
	}
	var each []json.RawMessage
	if json.Unmarshal(v, &each) == nil && each != nil {
		for i := range each {
			each[i] = shownJSON(each[i], conversations)
		}
		return raw(each)
	}
	return v
}

// cut leaves of an object the members that a graph takes, and makes its messages those of graphs. Anything else stays as it is. The error
// is a *noMessage.
func cut(input json.RawMessage, names []string, conversations map[string]bool) (_ json.RawMessage, err error) {
	var all object
	if json.Unmarshal(input, &all) != nil || all == nil {
		return input, nil
	}
	out := object{}
	for _, name := range names {
		v, given := all[name]
		switch {
		case !given:
			continue
		case conversations[name]:
			if v, err = messagesIn(v); err != nil {
				return nil, err
			}
		}
		out[name] = v
	}
	return raw(out), nil
}

// namesOf are the names of a graph's channels.
func namesOf(spec *pregel.Spec) []string {
	var names []string
	for _, c := range spec.Channels {
		names = append(names, c.Name)
	}
	return names
}

// inputOf are the channels that a graph's input has.
func inputOf(spec *pregel.Spec) []string {
	if spec.Input == nil {
		return namesOf(spec)
	}
	return spec.Input
}

// outputOf leaves of a thread's values those that the graph shows.
func outputOf(spec *pregel.Spec, values map[string]json.RawMessage) map[string]json.RawMessage {
	if spec.Output == nil {
		return values
	}
	out := map[string]json.RawMessage{}
	for _, name := range spec.Output {
		if v, ok := values[name]; ok {
			out[name] = v
		}
	}
	return out
}

// asked is a question as clients see it.
type asked struct {
	ID     string          `json:"id"`
	Value  json.RawMessage `json:"value"`
	Schema json.RawMessage `json:"response_schema,omitempty"`
}

func askedOf(questions []thread.Question) []asked {
	out := []asked{}
	for _, q := range questions {
		out = append(out, asked{questionOut(q.ID), q.Value, q.Schema})
	}
	return out
}

// taskID is a task's id as clients see it, by the thread and the key that the engine has for the task.
func taskID(threadID, key string) string {
	if _, behind, found := strings.Cut(key, "!"); found {
		key = behind // the branch
	}
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("superstep:task:"+threadID+"\n"+key)).String()
}

// spaceOf is a subgraph's namespace as clients write it: node:task, those around it first.
func spaceOf(threadID string, path []string) string {
	out := make([]string, len(path))
	for i, element := range path {
		_, at, _ := strings.Cut(element, "/")
		node, _, _ := strings.Cut(at, ":")
		out[i] = node + ":" + taskID(threadID, strings.Join(path[:i+1], "|"))
	}
	return strings.Join(out, "|")
}

// splitSpace takes a namespace apart, as the engine or a client writes it.
func splitSpace(space string) []string {
	if space == "" {
		return nil
	}
	return strings.Split(space, "|")
}

// place names a checkpoint.
type place struct {
	Thread     string            `json:"thread_id"`
	Namespace  string            `json:"checkpoint_ns"`
	Checkpoint string            `json:"checkpoint_id,omitempty"`
	Run        string            `json:"run_id,omitempty"`
	Map        map[string]string `json:"checkpoint_map,omitempty"`
}

// Clients take the id of a checkpoint for one that no other thread has, and for a UUID. A thread calls a checkpoint "c-" and ten
// digits, which sum up all that led to it, and a copy of a thread has the same ones. The UUID has those digits first, and behind them
// what comes of the thread's id.
const (
	checkpointBegin = "c-"
	checkpointOwn   = 10
	checkpointBytes = checkpointOwn / 2
)

// checkpointOut is the id of a thread's checkpoint as clients see it.
func checkpointOut(thread, id string) string {
	digits, ok := strings.CutPrefix(id, checkpointBegin)
	own, err := hex.DecodeString(digits)
	if !ok || err != nil || len(own) != checkpointBytes {
		return id
	}
	var out uuid.UUID
	sum := sha256.Sum256([]byte("superstep:checkpoint:" + thread))
	copy(out[:], own)
	copy(out[checkpointBytes:], sum[:])
	out[6], out[8] = out[6]&0x0f|0x80, out[8]&0x3f|0x80 // version 8: a UUID of one's own making
	return out.String()
}

// checkpointIn is the thread's id of a checkpoint, by either of them. That of another thread's stays as it is, and is found nowhere.
func checkpointIn(thread, id string) string {
	at, err := uuid.Parse(id)
	if err != nil {
		return id
	}
	if own := checkpointBegin + hex.EncodeToString(at[:checkpointBytes]); checkpointOut(thread, own) == at.String() {
		return own
	}
	return id
}
