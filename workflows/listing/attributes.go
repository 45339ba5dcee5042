package listing

import (
	"encoding/json"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/workflows/protocol"
)

// maxNameBytes bounds the names in one search attribute, as they are stored: the server takes 2 KiB, and ends a run that sends more.
const maxNameBytes = 1500

// attributes are a run's search attributes as the server was told of them, and the updates of those that say something else now. To name
// one that stands as it should would cost the server a check, a merge and a place in the event.
type attributes struct {
	told    temporal.SearchAttributes
	updates []temporal.SearchAttributeUpdate
}

func attributesOf(ctx workflow.Context) attributes {
	return attributes{told: workflow.GetTypedSearchAttributes(ctx)}
}

// upsert tells the server, where there is anything to tell.
func (a *attributes) upsert(ctx workflow.Context) {
	if len(a.updates) == 0 {
		return
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, a.updates...); err != nil {
		workflow.GetLogger(ctx).Warn("search attributes not updated", "error", err)
	}
}

// show updates the attributes that every list shows.
func (a *attributes) show(s Shown) {
	a.keyword(protocol.AttributeStatus, s.Status)
	a.keywords(protocol.AttributeNodes, s.Nodes)
	key := temporal.NewSearchAttributeKeyInt64(protocol.AttributeQuestions)
	if was, set := a.told.GetInt64(key); !set || was != int64(s.Open) {
		a.updates = append(a.updates, key.ValueSet(int64(s.Open)))
	}
}

// choose updates the attributes by which lists choose: whom a question waits for, until when, and at what risk.
func (a *attributes) choose(n protocol.QuestionsNote) {
	a.keywords(protocol.AttributeApprovers, approversOf(n))
	a.keyword(protocol.AttributeRisk, string(riskOf(n)))
	key, first := temporal.NewSearchAttributeKeyTime(protocol.AttributeDue), dueOf(n)
	switch was, _ := a.told.GetTime(key); {
	case was.Equal(first):
	case first.IsZero():
		a.updates = append(a.updates, key.ValueUnset())
	default:
		a.updates = append(a.updates, key.ValueSet(first))
	}
}

// keyword updates an attribute of one word, which no run has where that is "".
func (a *attributes) keyword(name, word string) {
	key := temporal.NewSearchAttributeKeyKeyword(name)
	switch was, _ := a.told.GetKeyword(key); {
	case was == word:
	case word == "":
		a.updates = append(a.updates, key.ValueUnset())
	default:
		a.updates = append(a.updates, key.ValueSet(word))
	}
}

// keywords updates an attribute of several words, which no run has where there are none.
func (a *attributes) keywords(name string, words []string) {
	key := temporal.NewSearchAttributeKeyKeywordList(name)
	switch was, _ := a.told.GetKeywordList(key); {
	case slices.Equal(was, words):
	case len(words) == 0:
		a.updates = append(a.updates, key.ValueUnset())
	default:
		a.updates = append(a.updates, key.ValueSet(words))
	}
}

// nodesOf are the nodes that ask, each once, as far as there is room: how many questions there are says another attribute.
func nodesOf(asking []string) (names []string) {
	size := 0
	for _, name := range asking {
		if slices.Contains(names, name) {
			continue
		}
		if size += storedBytes(name); size > maxNameBytes {
			break
		}
		names = append(names, name)
	}
	return names
}

// storedBytes is what a name takes in a list, as JSON.
func storedBytes(name string) int {
	text, _ := json.Marshal(name) // a string always encodes
	return len(text) + len(",")
}

// approversOf are those who are asked, each once; [protocol.AnyApprover] stands for those who do not fit, or are not known.
func approversOf(n protocol.QuestionsNote) (names []string) {
	size := 0
	for _, q := range n.Questions {
		for _, name := range q.Approvers {
			if slices.Contains(names, name) || slices.Contains(names, protocol.AnyApprover) {
				continue
			}
			if size += storedBytes(name); size > maxNameBytes {
				name = protocol.AnyApprover
			}
			names = append(names, name)
		}
	}
	if n.More > 0 && !slices.Contains(names, protocol.AnyApprover) {
		names = append(names, protocol.AnyApprover)
	}
	return names
}

func dueOf(n protocol.QuestionsNote) (first time.Time) {
	for _, q := range n.Questions {
		if !q.Due.IsZero() && (first.IsZero() || q.Due.Before(first)) {
			first = q.Due
		}
	}
	return first
}

func riskOf(n protocol.QuestionsNote) (highest approval.Risk) {
	for _, q := range n.Questions {
		if q.Risk.Above(highest) {
			highest = q.Risk
		}
	}
	return highest
}
