package superstep

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/jsonfit"
	"superstep.dev/internal/memory"
	"superstep.dev/store"
)

// Store is long-term memory across threads: JSON objects under a namespace and a key. Package store has its calls, and says how one is
// opened.
type Store = store.Store

// WithStore gives the nodes of a [Memory] a store.
func WithStore(s *Store) MemoryOption {
	return memoryOption(func(m *memory.Config) {
		m.Context = func(ctx context.Context) context.Context { return store.NewContext(ctx, s) }
	})
}

// StoreFrom returns the store for a node: that of the worker ([WorkerConfig].Store) or of the [Memory] ([WithStore]). Functions of effects and
// routing functions have it too.
//
// What a node puts and deletes is an [Effect] named "superstep.store", whose key is of the task, the item, and how often the task has
// written the item before. After a crash it is looked up in the database, so that an item has one new version, whatever crashed; a worker
// that was frozen writes nothing when it goes on. The item's value is no part of the effect: it is in no history, and where a node that runs
// again would write another one, what it has written stands. A run that is cancelled with its effects undone removes the items that it has
// created, unless they were written since; about those that it has replaced or deleted a person is asked.
//
// What a node reads is what is there, also when it runs again: read within a [Task] what decides about a write. The result of a node
// [WithCache] that uses the store is not kept.
//
// Errors: [store.ErrNone].
func StoreFrom(ctx context.Context) (*Store, error) {
	taskrun.DependsOn(ctx, "the store")
	s, err := store.FromContext(ctx)
	if err != nil {
		return nil, graphadapter.Permanent(err)
	}
	if _, inNode := taskrun.TaskFrom(ctx); !inNode {
		return s, nil
	}
	return s.Through(func(ctx context.Context, c store.Change) error { return storeWrite(ctx, s, c) }), nil
}

// storeEffectName is that of the effect with which every graph writes to a store.
const storeEffectName = "superstep.store"

// storeItem are the effect's parameters: which item is written, without its value.
type storeItem struct {
	Namespace []string `json:"namespace"`
	Key       string   `json:"key"`
	Delete    bool     `json:"delete,omitempty"`
}

// storeReceipt is what is recorded of a write. Its id is what it is undone by.
type storeReceipt struct {
	storeItem
	store.Receipt
	ID string `json:"id"`
}

// storeChange is a write on its way to the effect's Do, which has no other way to its value.
type storeChange struct {
	store  *Store
	change store.Change
}

type storeChangeKey struct{}

// storeWrite makes a write as an effect of the task that ctx is of.
func storeWrite(ctx context.Context, s *Store, c store.Change) error {
	t, ok := taskrun.TaskFrom(ctx)
	if !ok {
		return fmt.Errorf("write to the store: %w", ErrOutsideNode)
	}
	namespace, key, put := c.Item()
	params, err := jsonfit.Encode(storeItem{namespace, key, !put})
	if err != nil {
		return err
	}
	digest := sha256.Sum256(c.Value())
	_, err = t.Effect(context.WithValue(ctx, storeChangeKey{}, storeChange{s, c}), storeEffectName, params,
		graphadapter.CallOptions{About: string(params), Content: hex.EncodeToString(digest[:])})
	return answerError(err)
}

// storeWritten is the store that a write goes to; that of one which is undone is the worker's.
func storeWritten(ctx context.Context) (*Store, error) {
	if c, ok := ctx.Value(storeChangeKey{}).(storeChange); ok {
		return c.store, nil
	}
	return store.FromContext(ctx)
}

// storeEffect is the effect with which every graph writes to a store.
func storeEffect() graphadapter.Effect {
	effect := Effect[storeItem, storeReceipt]{Name: storeEffectName, Target: TargetKeyed,
		Do: func(ctx context.Context, key string, of storeItem) (storeReceipt, error) {
			c, ok := ctx.Value(storeChangeKey{}).(storeChange)
			if !ok {
				return storeReceipt{}, Permanent(errors.New("only a node can write to its store"))
			}
			receipt, err := c.store.Apply(ctx, c.change, key)
			return storeReceipt{of, receipt, key}, err
		},
		Lookup: func(ctx context.Context, key string, of storeItem) (Finding[storeReceipt], error) {
			s, err := storeWritten(ctx)
			if err != nil {
				return Finding[storeReceipt]{}, err
			}
			receipt, ok, err := s.Written(ctx, key)
			if err != nil || !ok {
				return Finding[storeReceipt]{Status: FindingNotFound}, err
			}
			return Finding[storeReceipt]{Status: FindingCommitted, Receipt: storeReceipt{of, receipt, key}}, nil
		},
		Compensate: func(ctx context.Context, _ string, _ storeItem, r storeReceipt) error {
			s, err := store.FromContext(ctx)
			if err != nil {
				return err
			}
			return s.Undo(ctx, r.ID)
		},
	}
	return effect.adapter()
}
