package workflows

import (
	"superstep.dev/graphadapter/life"
	"superstep.dev/workflows/protocol"
)

func actorOf(a *protocol.Asked) life.Actor {
	switch {
	case a == nil:
		return life.Actor{}
	case a.Proven != nil:
		return life.Actor{Claimed: a.By, Ruling: *a.Proven}
	}
	return life.Actor{Claimed: a.By}
}

// tokenOf is what proves who asks, "" for nothing.
func tokenOf(a *protocol.Asked) string {
	if a == nil {
		return ""
	}
	return a.Token
}

func nameOf(a *protocol.Asked) string {
	if a == nil {
		return ""
	}
	return a.By
}

// provenBy is who asks once a gate has said so; the token is not kept.
func provenBy(a *protocol.Asked, actor life.Actor) *protocol.Asked {
	if a == nil {
		return nil
	}
	known := *a
	known.Token, known.Proven = "", nil
	if actor.Ruling.By != "" {
		known.Proven = &actor.Ruling
	}
	return &known
}

// boundedAsked says what is wrong with who asks.
func boundedAsked(a *protocol.Asked) error {
	if a != nil && (len(a.By) > protocol.MaxNameBytes || len(a.From) > protocol.MaxNameBytes || len(a.Reason) > protocol.MaxReasonBytes || len(a.Token) > protocol.MaxTokenBytes) {
		return protocol.Refuse(protocol.ErrTypeBadUpdate, "who asks has a name of at most %d bytes, a reason of at most %d and a token of at most %d",
			protocol.MaxNameBytes, protocol.MaxReasonBytes, protocol.MaxTokenBytes)
	}
	return nil
}

func reasonOf(a *protocol.Asked) string {
	if a == nil {
		return ""
	}
	return a.Reason
}
