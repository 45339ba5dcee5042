package superstep_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"superstep.dev"
)

// An effect posts to a bank that refuses what arrives too late: the transport sends nothing once the time of the call is
// over, and the header tells the bank when that is.
func ExampleGuardedTransport() {
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		notAfter, err := time.Parse(time.RFC3339Nano, r.Header.Get("X-Not-After"))
		if err != nil || time.Now().After(notAfter) {
			http.Error(w, "too late", http.StatusPreconditionFailed)
			return
		}
		fmt.Println("the bank has", time.Until(notAfter) <= 10*time.Second, r.Header.Get("Idempotency-Key") != "")
		_ = json.NewEncoder(w).Encode("pay-1")
	}))
	defer bank.Close()
	client := &http.Client{Transport: superstep.GuardedTransport(nil)}

	pay := &superstep.Effect[string, string]{Name: "bank.pay", Target: superstep.TargetLookupOnly,
		Do: func(ctx context.Context, key, to string) (receipt string, err error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, bank.URL, strings.NewReader(to)) // Do's own context
			if err != nil {
				return "", err
			}
			req.Header.Set("Idempotency-Key", key)
			if at, ok := superstep.CallDeadline(ctx); ok {
				req.Header.Set("X-Not-After", at.UTC().Format(time.RFC3339Nano))
			}
			resp, err := client.Do(req)
			if err != nil {
				return "", err
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return "", fmt.Errorf("the bank says %s", resp.Status)
			}
			return receipt, json.NewDecoder(resp.Body).Decode(&receipt)
		},
		Lookup: func(context.Context, string, string) (superstep.Finding[string], error) {
			return superstep.Finding[string]{Status: superstep.FindingUnknown}, nil // a real one asks the bank
		},
	}
	g := superstep.NewStateGraph[trip]("payout")
	g.AddEffect(pay)
	g.AddNode("pay", func(ctx context.Context, s trip) (trip, error) {
		receipt, err := pay.Call(ctx, "ann in "+s.City.Get(), superstep.WithCallTimeout(10*time.Second))
		s.Ticket.Set(receipt)
		return s, err
	})
	g.AddEdge(superstep.Start, "pay")
	result, err := g.MustCompile().Thread(superstep.NewMemory(), "payout-7").Invoke(context.Background(), tripTo("Rome"))
	fmt.Println(result.Output.Ticket.Get(), err)

	// Outside of an effect's call nothing that may change something is sent.
	_, err = client.Post(bank.URL, "text/plain", strings.NewReader("ann"))
	fmt.Println(errors.Is(err, superstep.ErrOutsideCall))
	// Output:
	// the bank has true true
	// pay-1 <nil>
	// true
}
