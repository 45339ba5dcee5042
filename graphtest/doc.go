// Package graphtest helps to test graphs: whole graphs on every runtime, and single nodes as the ordinary functions
// that they are.
//
// [Runtimes] runs one test body in memory and on Temporal:
//
//	func TestRefund(t *testing.T) {
//		g := refund.Graph(newFakePayments(), 10_000)
//		graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
//			result, err := g.Thread(rt, graphtest.ThreadID(t)).Invoke(t.Context(), map[string]string{"order_id": "o-7"})
//			require.NoError(t, err)
//			require.Equal(t, thread.StatusFinished, result.Status)
//		}, g)
//	}
//
// [Context] is the context of a node that is called alone, with answers to its questions, stand-ins for its effects,
// and crashes:
//
//	ctx := graphtest.Context(t, graphtest.Answer(true), graphtest.Stub(refund, fakeRefund), graphtest.CrashAfterSend(refund))
//	_, err := commitRefund(ctx, state) // dies after the refund was sent: ErrCrashed
//	ctx = graphtest.Again(ctx)
//	state, err = commitRefund(ctx, state) // another worker takes over
//	graphtest.Calls(ctx, refund)          // one lookup, and no second refund
//
// Package transporttest below tests a transport of your own for live streams.
//
// [Matrix] crashes the worker of a whole graph at every point of a run, and [Interrupts] interrupts a run at every node.
package graphtest
