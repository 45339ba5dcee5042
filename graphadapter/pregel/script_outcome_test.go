package pregel_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"superstep.dev/graphadapter/pregel"
)

// outcomeOf reads what a task comes back with: words, in any number.
//
//	channel=JSON     a write; channel:=JSON overwrites
//	->node           a goto; ->node(JSON) sends
//	=>node           a route of a branch; =>node(JSON) sends
//	^                what follows is for the parent graph; ^^ for the parent's parent
//	asks ID=JSON     a question, unless task has its answer; $ID in later words is the answer
//	emits JSON       a value on the custom stream
//	keeps JSON       a ledger
//	waits ID=EVENT   a question that is a wait for an event, for a second, unless task has its answer
//	yields           the task is given back; with "claims KEY" it wants to own the key
//	notes KEY=JSON   what the thread is to keep under a key that the task owns
//	drains REASON    the run is to stop before its next superstep
//	cached           the rest comes from a cache
//	again            the answer to a failed subgraph's task that it is to be run on; without it it is not
//	fails TYPE text  a failure; it takes the rest of the line
func outcomeOf(text string, task *pregel.Task) (pregel.Outcome, error) {
	var o pregel.Outcome
	into := &o.Command
	words := strings.Fields(text)
	for i := 0; i < len(words); i++ {
		word := withAnswers(words[i], task)
		next := func() string {
			if i++; i < len(words) {
				return withAnswers(words[i], task)
			}
			return ""
		}
		switch {
		case strings.Trim(word, "^") == "":
			for range word {
				into.Parent = &pregel.Command{}
				into = into.Parent
			}
		case word == "asks":
			ask(&o, task, next())
		case word == "waits":
			id, event, _ := strings.Cut(next(), "=")
			ask(&o, task, id)
			if len(o.Questions) > 0 {
				o.Questions[0].Event, o.Questions[0].Timeout = event, 1000
			}
		case word == "emits":
			o.Emitted = append(o.Emitted, pregel.Emission{Value: pregel.Value(next())})
		case word == "drains":
			o.Drain = next()
		case word == "cached":
			o.Cached = true
		case word == "again":
			o.Again = true
		case word == "yields":
			o.Yielded = true
		case word == "claims":
			o.Claim = next()
		case word == "notes":
			key, value, _ := strings.Cut(next(), "=")
			if o.Kept == nil {
				o.Kept = map[string]pregel.Value{}
			}
			o.Kept[key] = pregel.Value(value)
		case word == "keeps":
			o.Ledger = pregel.Value(next())
		case word == "fails":
			kind := next()
			o.Error = &pregel.NodeError{Type: kind, Message: strings.Join(words[i+1:], " "), Graph: "g", Node: task.Node}
			return o, nil
		case strings.HasPrefix(word, "->"):
			into.Goto = append(into.Goto, targetOf(word[2:]))
		case strings.HasPrefix(word, "=>"):
			o.Routes = append(o.Routes, targetOf(word[2:]))
		default:
			w, err := writeOf(word)
			if err != nil {
				return o, err
			}
			into.Update = append(into.Update, w)
		}
	}
	return o, nil
}

// withAnswers puts the task's answers in place of $ID.
func withAnswers(word string, task *pregel.Task) string {
	if task == nil {
		return word
	}
	for _, a := range task.Answers {
		word = strings.ReplaceAll(word, "$"+a.QuestionID, string(a.Value))
	}
	return word
}

// ask asks a question that the task has no answer to.
func ask(o *pregel.Outcome, task *pregel.Task, word string) {
	id, value, _ := strings.Cut(word, "=")
	if value == "" {
		value = "null"
	}
	for _, a := range task.Answers {
		if a.QuestionID == id {
			return
		}
	}
	o.Questions = append(o.Questions, pregel.Question{ID: id, Ordinal: len(o.Questions), Value: pregel.Value(value)})
}

func targetOf(word string) pregel.Target {
	node, arg, send := strings.Cut(strings.TrimSuffix(word, ")"), "(")
	t := pregel.Target{Node: nodeName(node), Send: send}
	if send && arg != "" {
		t.Arg = pregel.Value(arg)
	}
	return t
}

func writeOf(word string) (pregel.Write, error) {
	name, value, ok := strings.Cut(word, "=")
	if !ok || !json.Valid([]byte(value)) {
		return pregel.Write{}, fmt.Errorf("a write is channel=JSON, not %q", word)
	}
	name, overwrite := strings.CutSuffix(name, ":")
	return pregel.Write{Channel: name, Value: pregel.Value(value), Overwrite: overwrite}, nil
}
