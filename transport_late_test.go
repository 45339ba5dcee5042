package superstep_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
)

// TestLiveForWhoComesLate: readers that come right after the start, after three of ten values and after seven, and one that
// goes on from another one's offset, have all ten, each once and in order, while the node is still under way.
func TestLiveForWhoComesLate(t *testing.T) {
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) { liveForWhoComesLate(t, opts...) })
	}
}

func liveForWhoComesLate(t *testing.T, opts ...superstep.CompileOption) {
	const count = 10
	emitted := make(chan int)      // how many
	goOn := make(chan struct{})    // to emit more
	allHave := make(chan struct{}) // until then the node does not end
	await := func(ctx context.Context, c <-chan struct{}) error {
		select {
		case <-c:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	g := superstep.NewStateGraph[counter]("live_late")
	g.AddNode("tell", func(ctx context.Context, s counter) (counter, error) {
		for i := range count {
			if err := superstep.Emit(ctx, i); err != nil {
				return s, err
			}
			select {
			case emitted <- i + 1:
			case <-ctx.Done():
				return s, ctx.Err()
			}
			if err := await(ctx, goOn); err != nil {
				return s, err
			}
		}
		return s, await(ctx, allHave)
	})
	g.AddEdge(superstep.Start, "tell")
	graph := g.MustCompile(opts...)
	th := graph.Thread(liveRuntime(t, &superstep.LocalTransport{}, graph), graphtest.ThreadID(t))
	require.NoError(t, th.Start(t.Context(), counter{}))

	var have, ended sync.WaitGroup
	offset := make(chan string, 1)
	read := func(name string, from ...superstep.StreamOption) {
		have.Add(1)
		ended.Go(func() {
			var got, want []string
			for p, err := range th.Stream(t.Context(), append(from, superstep.StreamCustom)...) {
				if !assert.NoError(t, err, name) {
					return
				}
				if got = append(got, string(p.Data)); len(got) == 1 && name == "first" {
					offset <- p.Offset
				}
				if len(got) == count {
					have.Done()
				}
			}
			for i := range count {
				want = append(want, fmt.Sprint(i))
			}
			assert.Equal(t, want, got, name)
		})
	}
	read("first")
	for n := range emitted {
		switch n {
		case 3:
			read("after three")
		case 7:
			read("after seven")
			read("goes on", superstep.StreamFrom(<-offset))
		}
		goOn <- struct{}{}
		if n == count {
			break
		}
	}
	have.Wait()
	close(allHave)
	ended.Wait()
}
