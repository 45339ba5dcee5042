package superstep_test

import (
	"bytes"
	"context"
	"fmt"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/approval/token"
)

// What is done to a run is in its thread's audit. A worker signs where that ends, so an export is proven wherever it is kept,
// with the worker's public key alone.
func ExampleThread_AuditExport() {
	private, _, _ := token.Generate(approval.Owner{Worker: "till"}, "till-1") // as a rule once, into files
	signer, _ := token.ParseSigner(private)
	rt := superstep.NewMemory(superstep.WithAuditSigner(signer)) // or a Client, of workers with WorkerConfig.AuditSigner
	g := superstep.NewStateGraph[payment]("audited")
	g.AddNode("ask", func(ctx context.Context, s payment) (payment, error) {
		_, err := superstep.Interrupt[bool](ctx, "go on?")
		return s, err
	})
	g.AddEdge(superstep.Start, "ask")
	thread, ctx := g.MustCompile().Thread(rt, "order-1815"), context.Background()
	_, _ = thread.Invoke(ctx, payment{})
	_ = thread.Pause(ctx, "the books are closed", superstep.AskedBy("ann"))
	_ = thread.Unpause(ctx, superstep.AskedBy("bob"))
	_, _ = thread.Resume(ctx, true, superstep.AskedBy("bob"))

	export, _ := thread.AuditExport(ctx)
	var file bytes.Buffer
	_ = approval.WriteExport(&file, export)

	kept, _ := approval.ReadExport(&file) // years later, somewhere else
	keys, _ := token.New(signer.Key())
	head, err := kept.Verify(keys, 1)
	fmt.Println(head.Thread, head.Count, head.Worker, err)
	for _, e := range kept.Entries {
		fmt.Println(e.Seq, e.Kind, "by", e.Claimed)
	}
	kept.Entries[0].Claimed = "bob"
	_, err = kept.Verify(keys, 1)
	fmt.Println(err != nil)
	// Output:
	// order-1815 3 till <nil>
	// 1 paused by ann
	// 2 unpaused by bob
	// 3 answered by bob
	// true
}
