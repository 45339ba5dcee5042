package store

import "context"

type contextKey struct{}

// NewContext returns ctx with a store, which [FromContext] finds. Workers do so for their nodes; who calls a graph in a program of its own,
// without a runtime, does so for the graph.
func NewContext(ctx context.Context, s *Store) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, contextKey{}, s)
}

// FromContext returns the store of a context. In a node use superstep.StoreFrom: what is put there is an effect. The error is [ErrNone].
func FromContext(ctx context.Context) (*Store, error) {
	s, ok := ctx.Value(contextKey{}).(*Store)
	if !ok {
		return nil, None()
	}
	return s, nil
}
