package stream_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"superstep.dev/test/rig"
	"superstep.dev/thread"

	"superstep.dev"
)

func TestStreamOfAFinishedThread(t *testing.T) {
	th := rig.Chain("g", "a", "b").MustCompile().Thread(superstep.NewMemory(), "t")
	_, err := th.Invoke(t.Context(), rig.Counter{})
	require.NoError(t, err)
	assert.Equal(t, []string{`1 updates {"a":{"log":["a"]}}`, `2 updates {"b":{"log":["b"]}}`}, rig.Lines(rig.StreamOf(t, th)))
}

func TestStreamsThatCannotBe(t *testing.T) {
	rt := superstep.NewMemory()
	g := rig.Chain("g", "a").MustCompile()
	failing := func(th *superstep.Thread[rig.Counter], opts ...superstep.StreamOption) error {
		for _, err := range th.Stream(t.Context(), opts...) {
			return err
		}
		return nil
	}
	assert.ErrorIs(t, failing(g.Thread(rt, "none")), thread.ErrNotFound)
	th := g.Thread(rt, "t")
	_, err := th.Invoke(t.Context(), rig.Counter{})
	require.NoError(t, err)
	other := g.Thread(rt, "other")
	_, err = other.Invoke(t.Context(), rig.Counter{})
	require.NoError(t, err)

	assert.ErrorIs(t, failing(th, thread.StreamMode("tokens")), thread.ErrBadInput)
	assert.ErrorIs(t, failing(th, thread.StreamReset), thread.ErrBadInput)
	good := rig.StreamOf(t, th)[0].Offset
	for _, bad := range []string{"x", "1" + good[1:], good[:len(good)-1], good + "0", strings.Replace(good, "run-1", "run-2", 1), strings.Repeat("1", 1000),
		rig.StreamOf(t, other)[0].Offset} {
		assert.ErrorIs(t, failing(th, superstep.StreamFrom(bad)), thread.ErrBadInput, bad)
	}
	assert.NoError(t, failing(th, superstep.StreamFrom(good)))
}

// TestEmittedValuesComeWhileTheNodeRuns: in memory nobody waits for the node's end.
func TestEmittedValuesComeWhileTheNodeRuns(t *testing.T) {
	seen := make(chan struct{})
	g := superstep.NewStateGraph[rig.Counter]("g")
	g.AddNode("a", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		if err := superstep.Emit(ctx, "working"); err != nil {
			return s, err
		}
		select {
		case <-seen:
			return s, nil
		case <-ctx.Done():
			return s, ctx.Err()
		}
	})
	g.AddEdge(superstep.Start, "a")
	th := g.MustCompile().Thread(superstep.NewMemory(), "t")
	require.NoError(t, th.Start(t.Context(), rig.Counter{}))
	var modes []thread.StreamMode
	for p, err := range th.Stream(t.Context(), thread.StreamCustom, thread.StreamUpdates) {
		require.NoError(t, err)
		if p.Mode == thread.StreamCustom {
			close(seen) // a second time it would panic
		}
		modes = append(modes, p.Mode)
	}
	assert.Equal(t, []thread.StreamMode{thread.StreamCustom, thread.StreamUpdates}, modes)
}

// TestAStreamThatNobodyWantsEnds: the end of the context is its error, a break ends it without.
func TestAStreamThatNobodyWantsEnds(t *testing.T) {
	g := superstep.NewStateGraph[rig.Counter]("g")
	g.AddNode("a", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		<-ctx.Done()
		return s, ctx.Err()
	})
	g.AddEdge(superstep.Start, "a")
	th := g.MustCompile().Thread(superstep.NewMemory(), "t")
	require.NoError(t, th.Start(t.Context(), rig.Counter{}))
	defer func() { require.NoError(t, th.Cancel(t.Context(), "the test is over")) }()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	defer cancel(nil)
	for p, err := range th.Stream(ctx, thread.StreamTasks) {
		if err != nil {
			assert.ErrorIs(t, err, enough)
			break
		}
		assert.Equal(t, thread.StreamTasks, p.Mode)
		cancel(enough)
	}
	for range th.Stream(t.Context(), thread.StreamTasks) {
		break
	}
}

// TestAGraphCalledFromCodeEmitsAsItsCaller: it is part of the node that calls it.
func TestAGraphCalledFromCodeEmitsAsItsCaller(t *testing.T) {
	inner := superstep.NewStateGraph[rig.Counter]("inner")
	inner.AddNode("deep", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		return s, superstep.Emit(ctx, "from within")
	})
	inner.AddEdge(superstep.Start, "deep")
	called := inner.MustCompile()
	g := superstep.NewStateGraph[rig.Counter]("g")
	g.AddNode("caller", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		_, err := called.Invoke(ctx, rig.Counter{})
		return s, err
	})
	g.AddEdge(superstep.Start, "caller")
	th := g.MustCompile().Thread(superstep.NewMemory(), "t")
	_, err := th.Invoke(t.Context(), rig.Counter{})
	require.NoError(t, err)
	assert.Equal(t, []string{`1 custom "from within"`, `1 updates {"caller":null}`},
		rig.Lines(rig.StreamOf(t, th, thread.StreamCustom, thread.StreamUpdates, superstep.StreamSubgraphs())))
}
