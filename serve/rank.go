package serve

import (
	"strconv"
	"strings"

	"superstep.dev/thread"
)

// rank is the place of an event among those of its run: how often a node had emitted before and something else followed, and the
// number since. A run that is read again gives the same numbers, and what a node emitted before its worker was lost, and did not
// emit again, moves only the numbers of what the node emits: what comes behind has another turn.
type rank struct{ turn, event int64 }

// eventBits bound the events of one turn; more go on as if it was another one.
const eventBits = 16

// behind reports whether an event comes after another one.
func (r rank) behind(other rank) bool {
	return r.turn > other.turn || r.turn == other.turn && r.event > other.event
}

// id is the rank as an event's id.
func (r rank) id() string { return itoa(int(r.turn)) + "-" + itoa(int(r.event)) }

// rankIn reads an id. What is none is before all events.
func rankIn(id string) rank {
	turn, event, _ := strings.Cut(id, "-")
	t, err := strconv.ParseInt(turn, 10, 64)
	e, also := strconv.ParseInt(event, 10, 64)
	if err != nil || also != nil || t < 0 || e < 0 {
		return rank{-1, 0}
	}
	return rank{t, e}
}

// number is the rank as one number, which grows.
func (r rank) number() int64 { return r.turn<<eventBits | r.event }

// ranks counts the events of a run. The zero value is before the first one.
type ranks struct {
	at rank
	// emits is the task whose emissions the last event was of, "" for none.
	emits string
}

// next is the rank of the next event, which is of a part; nil stands for one of none.
func (rs *ranks) next(p *thread.Part) rank {
	emits := ""
	if p != nil && (p.Mode == thread.StreamCustom || p.Mode == thread.StreamMessages) {
		emits = "by " + p.Task
	}
	rs.at.event++
	if rs.emits != "" && rs.emits != emits || rs.at.event == 1<<eventBits {
		rs.at = rank{rs.at.turn + 1, 0}
	}
	rs.emits = emits
	return rs.at
}
