package serve

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// The channels of the second version's events.
const (
	channelValues    = "values"
	channelUpdates   = "updates"
	channelMessages  = "messages"
	channelCustom    = "custom"
	channelLifecycle = "lifecycle"
	channelInput     = "input"
)

// channels are those that can be asked for. What tools, tasks and checkpoints would tell stands in values and updates.
var channels = []string{channelValues, channelUpdates, channelMessages, channelCustom, channelLifecycle, channelInput, "tools", "tasks", "checkpoints"}

// The bounds of a subscription.
const (
	mostChannels = 100
	mostSpaces   = 200
	mostDepth    = 100
	maxSegment   = 500 // bytes
	maxSince     = 1<<53 - 1
)

// subscription is what of a thread's events a client wants.
type subscription struct {
	Channels []string `json:"channels"`
	// Namespaces begin the namespaces of the events; none stands for all. A segment without a task's id stands for all of its node.
	Namespaces [][]string `json:"namespaces"`
	// Depth is how far below these an event may be, nil for any.
	Depth *int `json:"depth"`
	// Since is the number of the last event that the client has, 0 for none.
	Since int64 `json:"since"`
}

// subscriptionIn reads the body of a request for events. What is wrong with it is 400, as clients of this version expect.
func subscriptionIn(w http.ResponseWriter, r *http.Request) (s subscription, err error) {
	err = read(w, r, &s)
	var f *fault
	if errors.As(err, &f) && f.status == http.StatusUnprocessableEntity {
		err = refuse(http.StatusBadRequest, "%s", f.detail)
	}
	if err == nil {
		err = s.check()
	}
	return s, err
}

func (s *subscription) check() error {
	bad := func(format string, args ...any) error { return refuse(http.StatusBadRequest, format, args...) }
	switch {
	case len(s.Channels) == 0:
		return bad("channels are missing: name some of %s", strings.Join(channels, ", "))
	case len(s.Channels) > mostChannels:
		return bad("%d channels: at most %d", len(s.Channels), mostChannels)
	case len(s.Namespaces) > mostSpaces:
		return bad("%d namespaces: at most %d", len(s.Namespaces), mostSpaces)
	case s.Depth != nil && *s.Depth < 0:
		return bad("depth %d is below 0", *s.Depth)
	case s.Since < 0 || s.Since > maxSince:
		return bad("since %d is the seq of no event", s.Since)
	}
	for _, c := range s.Channels {
		named, custom := strings.CutPrefix(c, channelCustom+":")
		if !slices.Contains(channels, c) && (!custom || named == "" || len(c) > maxSegment) {
			return bad("channel %.100q is none of %s, and no custom:NAME", c, strings.Join(channels, ", "))
		}
	}
	for _, space := range s.Namespaces {
		if len(space) > mostDepth || slices.ContainsFunc(space, func(segment string) bool { return len(segment) > maxSegment }) {
			return bad("a namespace has at most %d segments of %d bytes", mostDepth, maxSegment)
		}
	}
	return nil
}

// wants reports whether an event is asked for.
func (s *subscription) wants(e happened) bool {
	if !slices.Contains(s.Channels, e.channel) && (e.name == "" || !slices.Contains(s.Channels, e.channel+":"+e.name)) {
		return false
	}
	if len(s.Namespaces) == 0 {
		return true
	}
	return slices.ContainsFunc(s.Namespaces, func(prefix []string) bool {
		return begins(e.space, prefix) && (s.Depth == nil || len(e.space)-len(prefix) <= *s.Depth)
	})
}

// begins reports whether a namespace begins with another one.
func begins(space, prefix []string) bool {
	if len(prefix) > len(space) {
		return false
	}
	for i, segment := range prefix {
		node, _, _ := strings.Cut(space[i], ":")
		if segment != space[i] && segment != node {
			return false
		}
	}
	return true
}

// nameIn is the name that something custom has itself, "" for none.
func nameIn(v json.RawMessage) string {
	var o object
	if json.Unmarshal(v, &o) != nil {
		return ""
	}
	return o.text("name")
}
