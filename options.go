package superstep

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsonfit"
)

// RetryPolicy says how often a failed attempt of a node is repeated. The zero value of a field means its default: three attempts in
// all, with waits of 0.5 s that double up to 128 s and a random second on top, after every error that is not [Permanent]. A
// node without a policy ([WithRetry]) is not repeated. An error may ask for another wait: see [RetryAfter].
type RetryPolicy = graphadapter.RetryPolicy

// RetryIf is a [RetryPolicy]'s RetryOn for errors of one type, wrapped or not: RetryOn: superstep.RetryIf[*net.OpError].
// What failed in a subgraph is data: tell those errors apart by the Type of a *[NodeError].
func RetryIf[E error](err error) bool {
	var wanted E
	return errors.As(err, &wanted)
}

// SubgraphMemory says how long a subgraph remembers its state.
type SubgraphMemory = pregel.Memory

const (
	// SubgraphMemoryRun keeps it for one run of the subgraph's node, across interrupts: the default.
	SubgraphMemoryRun = pregel.MemoryRun
	// SubgraphMemoryThread keeps it between runs of the node, for the life of the thread.
	SubgraphMemoryThread = pregel.MemoryThread
	// SubgraphMemoryNone keeps nothing: after an interrupt the subgraph starts again from its input.
	SubgraphMemoryNone = pregel.MemoryNone
)

// NodeOption shapes one node.
type NodeOption interface {
	EntrypointOption
	applyNode(*nodeOptions)
}

type nodeOptions struct {
	retry     []RetryPolicy
	run, idle time.Duration
	late      bool
	taskQueue string
	memory    *SubgraphMemory
	cache     *CachePolicy
	approval  *nodeApproval
}

type nodeOption func(*nodeOptions)

func (o nodeOption) applyNode(n *nodeOptions) { o(n) }

func (o nodeOption) applyEntrypoint(e *entrypointOptions) { o(&e.node) }

// WithRetry repeats failed attempts of the node; without it the first failure is final. An attempt that is lost with its worker is no
// failure, and is repeated either way. Given several times, the first policy whose RetryOn takes the error
// decides. A subgraph node runs on from where its subgraph failed, so that what had finished in it does not run again;
// RetryOn is then given a *[NodeError].
func WithRetry(p RetryPolicy) NodeOption {
	return nodeOption(func(n *nodeOptions) { n.retry = append(n.retry, p) })
}

// WithTimeout bounds one attempt of the node: run is its whole duration, idle the time without progress (a write, an
// emitted value, a finished Task or Effect, a heartbeat). 0 means no bound. An attempt out of time fails, and its
// context is cancelled.
func WithTimeout(run, idle time.Duration) NodeOption {
	return nodeOption(func(n *nodeOptions) { n.run, n.idle = run, idle })
}

// WithDefer holds the node back until nothing else is left to run.
func WithDefer() NodeOption { return nodeOption(func(n *nodeOptions) { n.late = true }) }

// WithTaskQueue runs the node's tasks on the workers of that Temporal task queue. In memory it changes nothing.
func WithTaskQueue(queue string) NodeOption {
	return nodeOption(func(n *nodeOptions) { n.taskQueue = queue })
}

// WithSubgraphMemory says how long a subgraph node remembers its state. It is for AddSubgraph only.
func WithSubgraphMemory(m SubgraphMemory) NodeOption {
	return nodeOption(func(n *nodeOptions) { n.memory = &m })
}

// CompileOption shapes a graph when it is compiled.
type CompileOption interface {
	EntrypointOption
	applyCompile(*compileOptions)
}

type compileOptions struct {
	before, after []string
	input, output reflect.Type
	cache         Cache
	cacheGiven    bool
	durability    Durability
	fused         bool
	context       reflect.Type
}

type compileOption func(*compileOptions)

func (o compileOption) applyCompile(c *compileOptions) { o(c) }

func (o compileOption) applyEntrypoint(e *entrypointOptions) { o(&e.compile) }

// WithInterruptBefore stops every run before one of the nodes runs, or before each with [All]. The run goes on when it
// is invoked without input.
func WithInterruptBefore(nodes ...string) CompileOption {
	return compileOption(func(c *compileOptions) { c.before = append(c.before, nodes...) })
}

// WithInterruptAfter stops every run after one of the nodes ran, or after each with [All].
func WithInterruptAfter(nodes ...string) CompileOption {
	return compileOption(func(c *compileOptions) { c.after = append(c.after, nodes...) })
}

// WithInput makes the fields of In, a struct of channels, the graph's input, instead of all state fields. A field that
// the state does not have becomes a channel that only nodes made with AddInputNode read.
func WithInput[In any]() CompileOption {
	return compileOption(func(c *compileOptions) { c.input = reflect.TypeFor[In]() })
}

// WithOutput makes the fields of Out, a struct of channels, the graph's output, instead of all state fields. Results
// are still of the state's type; fields outside Out are unset in them.
func WithOutput[Out any]() CompileOption {
	return compileOption(func(c *compileOptions) { c.output = reflect.TypeFor[Out]() })
}

// WithContextSchema says of which type the value is that runs are given by [WithContext] and nodes read with [RunContext], so that
// callers who only know the graph's name learn what it looks like (LangGraph's context_schema). It checks nothing.
func WithContextSchema[T any]() CompileOption {
	return compileOption(func(c *compileOptions) { c.context = reflect.TypeFor[T]() })
}

// CachePolicy says that a node's results may be reused for equal inputs; see [WithCache].
type CachePolicy struct {
	// TTL is how long a result may be reused; 0 means as long as the cache keeps it.
	TTL time.Duration
	// Key says what of the node's input decides about the result. Make one with [CacheBy]; the zero value means all that
	// the node and its conditional edges can read, the run's context included.
	Key CacheKey
}

// CacheKey says what of a node's input decides about its result. Make one with [CacheBy].
type CacheKey struct {
	of    func(graphadapter.Input) (string, error)
	input reflect.Type
}

// CacheBy makes a key of a node's input, which is of the type that the node's function takes. Inputs of equal keys share
// a result, but for nodes that call [RunContext], whose results are not kept with a key. When key fails the node runs, and its result is not kept.
func CacheBy[In any](key func(In) (string, error)) CacheKey {
	input := reflect.TypeFor[In]()
	return CacheKey{input: input, of: func(in graphadapter.Input) (string, error) {
		sc := newScope("", "")
		v, err := readInput[In](sc, in, isState(input))
		if err != nil {
			return "", err
		}
		out, err := key(v)
		return out, sc.with(err)
	}}
}

// WithCache reuses what the node returned, its way on included, when it is to run again on an equal input, in any run
// that shares the graph's cache: this process's own, or that of [WithCacheBackend]. A node that is taken from the cache
// does not run: it asks nothing, emits nothing and calls no effect, so give this to nodes that only compute or read.
//
// Only what succeeded is kept: never a failure, a question, or what a node returned that called an [Effect]. Nor is what came of more than
// the input: the node, a conditional edge of it or a graph that it called read [Info], the store or a value of its context.Context, used
// [WithThreadKey], or went on with Tasks of an earlier attempt. The log says so once. What [RunContext] returns is part of the key. A subgraph
// node cannot have it, because there is no function whose result it would be: give it to the nodes of the subgraph.
func WithCache(p CachePolicy) NodeOption {
	return nodeOption(func(n *nodeOptions) { n.cache = &p })
}

// Cache keeps results of nodes under the graph's name (for a subgraph's node its path), the node's name and a digest of
// the node's input. No version of the graph is part of that: who changes what a node does calls [Graph.ClearCache]. It
// may forget at any time. Implementations are safe for concurrent use; an error of theirs is logged and costs a run of the node, no
// more.
type Cache interface {
	// Get returns what was stored, nil when there is nothing (any more).
	Get(ctx context.Context, graph, node, input string) (json.RawMessage, error)
	// Set stores a result for ttl; 0 means without an end.
	Set(ctx context.Context, graph, node, input string, result json.RawMessage, ttl time.Duration) error
	// Clear forgets everything of a node, or of a whole graph when node is "".
	Clear(ctx context.Context, graph, node string) error
}

// WithCacheBackend keeps the results of nodes [WithCache], those of subgraphs included, in c instead of this process's
// memory, so that workers share them.
func WithCacheBackend(c Cache) CompileOption {
	return compileOption(func(o *compileOptions) { o.cache, o.cacheGiven = c, true })
}

// cacheBackend is a user's cache as the adapter takes it.
type cacheBackend struct{ Cache }

func (b cacheBackend) Get(ctx context.Context, k graphadapter.CacheKey) (pregel.Value, error) {
	return b.Cache.Get(ctx, k.Graph, k.Node, k.Input)
}

func (b cacheBackend) Set(ctx context.Context, k graphadapter.CacheKey, v pregel.Value, ttl time.Duration) error {
	return b.Cache.Set(ctx, k.Graph, k.Node, k.Input, v, ttl)
}

// inCache stands in a cached result for the task in the ids that it gave to messages. Whoever reuses the result puts its
// own there: otherwise a message would replace the one of the task before instead of coming after it.
const inCache = "t--"

// unnamedMessages and namedMessages are the ways into and out of a cache for a node's writes to these channels.
func unnamedMessages(channels []string) func(context.Context, pregel.Command) (pregel.Command, error) {
	return renamed(channels, func(sc *scope) (from, to string) { return sc.messagePrefix(), inCache })
}

func namedMessages(channels []string) func(context.Context, pregel.Command) (pregel.Command, error) {
	return renamed(channels, func(sc *scope) (from, to string) { return inCache, sc.messagePrefix() })
}

// renamed changes the beginning of the ids of a command's messages.
func renamed(
	channels []string, change func(*scope) (from, to string),
) func(context.Context, pregel.Command) (pregel.Command, error) {
	return func(ctx context.Context, c pregel.Command) (pregel.Command, error) {
		from, to := change(taskScope(ctx, "", ""))
		c.Update = slices.Clone(c.Update)
		for i, w := range c.Update {
			if !slices.Contains(channels, w.Channel) {
				continue
			}
			var messages []map[string]json.RawMessage
			if err := json.Unmarshal(w.Value, &messages); err != nil {
				return c, err
			}
			for _, m := range messages {
				var id string
				if json.Unmarshal(m["id"], &id) == nil && strings.HasPrefix(id, from) {
					m["id"], _ = jsonfit.Encode(to + id[len(from):]) // a string always encodes
				}
			}
			raw, err := jsonfit.Encode(messages)
			if err != nil {
				return c, err
			}
			c.Update[i].Value = raw
		}
		return c, nil
	}
}

// EntrypointOption shapes a [NewEntrypoint]: every [NodeOption] that a function can have ([WithRetry], [WithTimeout],
// [WithCache], [WithTaskQueue]), every [CompileOption] except those of state fields, and [WithEffects]. A key of
// [CacheBy] is made of the input alone; without one the previous value counts too.
type EntrypointOption interface {
	applyEntrypoint(*entrypointOptions)
}

type entrypointOptions struct {
	node    nodeOptions
	compile compileOptions
	effects []effectDecl
}

// nodeApproval is WithApproval without its type.
type nodeApproval struct {
	input   reflect.Type
	missing bool
	// before returns the function of a node that asks first. fromState says that its input is read from the state.
	before func(r *router, fromState bool, run graphadapter.NodeFunc) graphadapter.NodeFunc
}
