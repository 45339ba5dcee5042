package taskrun

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
)

// cacheTimeout bounds one call of a cache: beyond it, running the node is the better choice.
const cacheTimeout = 5 * time.Second

// cachedResult is what a cache keeps: the node's command and the routes of its branches.
type cachedResult struct {
	Version int `json:"version"`
	pregel.Command
	Routes []pregel.Target `json:"routes,omitempty"`
}

// resultCache is a task's part in the cache of its node's results.
type resultCache struct{ *TaskRun }

// cachedVersion is the version of the stored form. A result of another one is none.
const cachedVersion = 1

// key returns the key of the task's result; ok is false when it has none: its node keeps nothing, or the task is
// not a plain run of it.
func (t resultCache) key() (key graphadapter.CacheKey, ok bool) {
	policy := t.node.Cache
	if policy == nil || t.task.RouteOnly || t.task.Failure != nil || len(t.task.Answers) > 0 {
		return graphadapter.CacheKey{}, false
	}
	digest, err := t.inputDigest(policy)
	if err != nil {
		t.warn("key", err)
		return graphadapter.CacheKey{}, false
	}
	path := append([]string{t.root.Spec.Name}, t.task.Graph...)
	return graphadapter.CacheKey{Graph: strings.Join(path, "/"), Node: t.task.Node, Input: digest}, true
}

// inputDigest names the task's input. The branches that are to be evaluated are part of it, as the run's Spec has them:
// kept routes lead to that Spec's nodes.
func (t resultCache) inputDigest(policy *graphadapter.CachePolicy) (digest string, err error) {
	defer graphadapter.Catch(&err)
	branches, err := json.Marshal(t.task.Branches)
	if err != nil {
		return "", err
	}
	if policy.Key != nil {
		key, err := policy.Key(t.input())
		return ledger.Hash("cache", "key", key, string(branches)), err
	}
	input, err := jsontext.Encode(struct {
		State   graphadapter.State `json:"state,omitempty"`
		Arg     pregel.Value       `json:"arg,omitempty"`
		Context pregel.Value       `json:"context,omitempty"`
	}{t.reads(), t.task.Arg, t.env.Context})
	if err != nil {
		return "", err
	}
	hash, err := graphadapter.ParamsHash(input)
	return ledger.Hash("cache", "input", hash, string(branches)), err
}

// reads is the state that the task can read: a Send's node reads its argument alone, its branches everything.
func (t resultCache) reads() graphadapter.State {
	if t.task.Arg != nil && len(t.task.Branches) == 0 {
		return nil
	}
	return t.task.State
}

// reuse returns the kept result of an equal input. Only a first attempt asks for one: an earlier one may have acted
// outside, and then has to be gone on with.
func (t resultCache) reuse(ctx context.Context, key graphadapter.CacheKey) (result cachedResult, ok bool) {
	if t.info.Attempt > 1 || t.info.Suspect || t.actedOutside() {
		return cachedResult{}, false
	}
	var stored pregel.Value
	err := t.withCache(ctx, func(ctx context.Context, cache graphadapter.Cache) (err error) {
		stored, err = cache.Get(ctx, key)
		return err
	})
	if err != nil {
		t.warn("get", err)
		return cachedResult{}, false
	}
	if stored == nil {
		return cachedResult{}, false
	}
	if err := json.Unmarshal(stored, &result); err != nil {
		t.warn("read", err)
		return cachedResult{}, false
	}
	if result.Version != cachedVersion || !t.leadsOn(result) {
		return cachedResult{}, false
	}
	if result.Command, err = t.adapted(ctx, t.node.Reused, result.Command); err != nil {
		t.warn("read", err)
		return cachedResult{}, false
	}
	return result, true
}

// leadsOn reports whether the graph has every node that a kept result goes to: one that was kept by another version of it
// may lead nowhere now, and the run would end as if it had finished.
func (t resultCache) leadsOn(kept cachedResult) bool {
	return !slices.ContainsFunc(slices.Concat(kept.Goto, kept.Routes), func(way pregel.Target) bool {
		_, known := t.graph.NodeSpec(way.Node)
		return !known && way.Node != pregel.End
	})
}

// adapted is a command as the node's own hook changes it.
func (t resultCache) adapted(
	ctx context.Context, hook func(context.Context, pregel.Command) (pregel.Command, error), c pregel.Command,
) (out pregel.Command, err error) {
	if hook == nil {
		return c, nil
	}
	defer graphadapter.Catch(&err)
	return hook(t.in(ctx), c)
}

// store keeps a success that an equal input may reuse.
func (t resultCache) store(ctx context.Context, key graphadapter.CacheKey, command pregel.Command, routes []pregel.Target) {
	if ctx.Err() != nil || command.Parent != nil || !t.mayKeep() {
		return
	}
	command, err := t.adapted(ctx, t.node.Kept, command)
	var stored pregel.Value
	if err == nil {
		stored, err = jsontext.Encode(cachedResult{Version: cachedVersion, Command: command, Routes: routes})
	}
	if err == nil {
		err = t.withCache(ctx, func(ctx context.Context, cache graphadapter.Cache) error {
			return cache.Set(ctx, key, stored, t.node.Cache.TTL)
		})
	}
	if err != nil {
		t.warn("set", err)
	}
}

// dependsOnInputAlone reports whether nobody else had a say in the result, and nothing but the result came of it.
func (t resultCache) dependsOnInputAlone() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.fenced && t.drain == "" && len(t.ordinals) == 0 && !t.actedOutside() && !t.remembersOthers()
}

// actedOutside reports whether an effect is in the task's ledger, whatever came of it.
func (t resultCache) actedOutside() bool {
	return slices.ContainsFunc(t.journal.Entries(), func(e ledger.Entry) bool { return e.Kind == ledger.KindEffect })
}

// withCache makes one call of the root graph's cache. Neither a panic nor a delay of it is the task's.
func (t resultCache) withCache(ctx context.Context, call func(context.Context, graphadapter.Cache) error) (err error) {
	defer graphadapter.Catch(&err)
	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	defer t.idle.hold()()
	return call(ctx, t.root.ResultCache())
}

func (t resultCache) warn(op string, err error) {
	t.goesWithout(&graphadapter.CacheError{Graph: t.info.Graph, Node: t.info.Node, Op: op, Err: err})
}

// notKept are the nodes whose results this process has said that it does not keep, and why.
var notKept sync.Map

// mayKeep reports whether the node's result depends on its input alone. The first time that a node has read something else the log says
// so: its policy has no effect.
func (t resultCache) mayKeep() bool {
	if !t.dependsOnInputAlone() {
		return false
	}
	t.mu.Lock()
	beyond := t.beyond
	t.mu.Unlock()
	if beyond == "" {
		return true
	}
	of := [3]string{t.info.Graph, t.info.Node, beyond}
	if _, before := notKept.LoadOrStore(of, true); !before {
		t.goesWithout(&graphadapter.CacheError{Graph: t.info.Graph, Node: t.info.Node, Op: "set",
			Err: errors.New("its result is not kept, as the node read " + beyond + ", which is not part of its input: put it into the state, " +
				"or leave out the cache policy")})
	}
	return false
}

// remembersOthers reports whether the task began with calls that an execution before has recorded: what that one read is not known here. A
// thread-wide call is the thread's.
func (t resultCache) remembersOthers() bool {
	for _, e := range t.journal.Entries() {
		if e.ThreadWide || e.Kind == ledger.KindTask && t.remembered[e.Key] {
			return true
		}
	}
	return false
}
