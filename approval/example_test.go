package approval_test

import (
	"encoding/json"
	"fmt"

	"superstep.dev/approval"
)

// An audit whose entries were tampered with no longer verifies.
func ExampleVerifyEntries() {
	var chain approval.Chain
	entries := []approval.Entry{
		chain.Append(approval.Entry{Kind: approval.KindAsked, Thread: "order-1815", Question: "q1"}),
		chain.Append(approval.Entry{Kind: approval.KindAnswered, Thread: "order-1815", Question: "q1", Who: "ana"}),
	}
	end, err := approval.VerifyEntries(approval.Chain{}, entries)
	fmt.Println(end == chain, err)

	entries[1].Who = "bob"
	_, err = approval.VerifyEntries(approval.Chain{}, entries)
	fmt.Println(err)
	// Output:
	// true <nil>
	// the audit is broken at entry 2: its hash is not that of what it says; compare it with the run's event history
}

// What people are shown of other parameters.
func ExampleDiff() {
	changes, _ := approval.Diff(
		json.RawMessage(`{"amount":120,"card":{"number":"4111"}}`),
		json.RawMessage(`{"amount":80,"card":{"number":"4242"}}`), []string{"/card/number"})
	for _, c := range changes {
		fmt.Printf("%s: %s → %s\n", c.Path, c.Before, c.Now)
	}
	// Output:
	// /amount: 120 → 80
	// /card/number: "***" → "***"
}
