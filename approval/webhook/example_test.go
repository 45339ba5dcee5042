package webhook_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"superstep.dev/approval"
	"superstep.dev/approval/webhook"
)

// A receiver verifies what it is posted, and drops what it has seen.
func ExampleVerify() {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // SUPERSTEP_NOTIFY_SECRET
	seen := map[string]bool{}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
		if err != nil {
			return
		}
		n, err := webhook.Verify(secret, r.Header, body)
		if err != nil {
			http.Error(w, "not signed by us", http.StatusUnauthorized)
			return
		}
		if !seen[n.ID] {
			seen[n.ID] = true
			fmt.Printf("%s: %s (superstep question %s %s)\n", n.Kind, n.Summary, n.Thread, n.Question)
		}
	}))
	defer receiver.Close()

	notifier, err := webhook.New(webhook.Config{URLs: []string{receiver.URL}, Secret: secret})
	if err != nil {
		fmt.Println(err)
		return
	}
	n := approval.Notice{Kind: approval.KindAsked, Thread: "r-7", Question: "q-1a2b3c4d", Summary: "Refund 250.00 to order o-7"}
	for range 2 { // as after a reply that was lost
		if err := notifier.Notify(context.Background(), notifier.Targets()[0], n.Name()); err != nil {
			fmt.Println(err)
		}
	}
	// Output: asked: Refund 250.00 to order o-7 (superstep question r-7 q-1a2b3c4d)
}
