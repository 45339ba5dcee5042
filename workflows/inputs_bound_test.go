package workflows

import (
	"strings"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// TestWhatATaskMayRead: what is sent and what is referred to have a bound each, and the refusal names size and bound.
func TestWhatATaskMayRead(t *testing.T) {
	t.Parallel()
	r := &tasks{engine: &engine{in: protocol.GraphInput{Graph: "g"}}}
	request := func(sent int, referred ...int) graphadapter.NodeRequest {
		req := graphadapter.NodeRequest{Task: pregel.Task{Node: "n", Arg: make(pregel.Value, sent)}}
		for _, size := range referred {
			req.References = append(req.References, graphadapter.Reference{Part: graphadapter.PartChannel, Size: size})
		}
		return req
	}
	for _, c := range []struct {
		name    string
		req     graphadapter.NodeRequest
		refusal string
	}{
		{"little", request(100), ""},
		{"as much as is sent", request(maxRequestBytes - 512), ""},
		{"more than is sent", request(maxRequestBytes - 511), "has 1945601 bytes, at most 1945600"},
		{"as much as is referred to", request(0, maxReferred/2, maxReferred/2-512-2*referenceBytes), ""},
		{"more than is referred to", request(0, maxReferred/2, maxReferred/2), "at most 67108864"},
	} {
		refused := r.tooLarge(c.req, requestSize(c.req))
		switch {
		case c.refusal == "" && refused != nil:
			t.Errorf("%s: refused with %v", c.name, refused)
		case c.refusal != "" && (refused == nil || !strings.Contains(refused.Message, c.refusal) ||
			refused.Type != "PayloadTooLarge" || refused.Graph != "g" || refused.Node != "n"):
			t.Errorf("%s: refused with %+v, want %q", c.name, refused, c.refusal)
		}
	}
}
