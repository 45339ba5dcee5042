package nats

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/proto"

	"superstep.dev/thread/live"
)

// subjects begin with this.
const subjects = "superstep.live"

// The headers of messages: endedHeader says that a task is over, and markHeader has the number of a mark by which a reader sees how far
// it is; the others are JetStream's, and have the message replace all of its
// subject, and go itself after a time. Who follows is to have what the task emitted last before it is replaced: that takes lingers.
const (
	endedHeader  = "Superstep-Ended"
	markHeader   = "Superstep-Mark"
	rollupHeader = "Nats-Rollup"
	ttlHeader    = "Nats-TTL"
	markLife     = "1m"
	lingers      = 2 * time.Second
)

// naming makes subjects for the threads of a namespace.
type naming string

// hashed is a name that says nothing, and is none of another thread's.
func hashed(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// thread is what the subjects of a thread's tasks begin with.
func (n naming) thread(id string) string { return subjects + "." + hashed(string(n), id) }

// task is the subject of a task.
func (n naming) task(t live.Task) string { return n.thread(t.Thread) + "." + hashed(t.Run, t.Task) }

// encode makes a message of an emission.
func (t *Transport) encode(e live.Emission) ([]byte, error) {
	payload, err := t.convert.ToPayload(e)
	if err != nil {
		return nil, fmt.Errorf("encode what thread %q emits: %w", e.Thread, err)
	}
	data, err := proto.Marshal(payload)
	if err == nil && len(data) > maxMessage {
		err = fmt.Errorf("an emission of thread %q has %d bytes, a live one has %d at most", e.Thread, len(data), maxMessage)
	}
	return data, err
}

// decode reads a message.
func (t *Transport) decode(data []byte) (e live.Emission, err error) {
	var payload commonpb.Payload
	if err = proto.Unmarshal(data, &payload); err == nil {
		err = t.convert.FromPayload(&payload, &e)
	}
	return e, err
}
