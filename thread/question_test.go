package thread_test

import (
	"encoding/json"
	"fmt"

	"superstep.dev/thread"
)

// A question says itself in a log.
func ExampleQuestion_String() {
	q := thread.Question{ID: "q-41c9", Node: "approval", Value: json.RawMessage(`"Refund 250.00?"`)}
	fmt.Println([]thread.Question{q})
	// Output: [q-41c9 of approval: Refund 250.00?]
}
