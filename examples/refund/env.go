package refund

import (
	"fmt"
	"os"
	"strconv"

	"superstep.dev"
	"superstep.dev/examples/refund/payments"
)

// defaultPayments is where the payments service listens unless told otherwise.
const defaultPayments = "http://127.0.0.1:8090"

// FromEnv returns the graph as the environment says: PAYMENTS_URL is the payments service (http://127.0.0.1:8090),
// REFUND_LIMIT the amount in cents above which a person is asked (10000), and REFUND_APPROVALS, when it is not empty, makes
// that an approval of the refund itself ([WithApprovals]). It ends the process with one line when one of them is no use:
// it is for mains.
func FromEnv() *superstep.Graph[State] {
	var opts []Option
	if os.Getenv("REFUND_APPROVALS") != "" {
		opts = append(opts, WithApprovals())
	}
	g, err := fromEnv(os.Getenv("PAYMENTS_URL"), os.Getenv("REFUND_LIMIT"), opts...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "refund:", err)
		os.Exit(2)
	}
	return g
}

func fromEnv(url, limit string, opts ...Option) (*superstep.Graph[State], error) {
	if url == "" {
		url = defaultPayments
	}
	client, err := payments.NewClient(url)
	if err != nil {
		return nil, fmt.Errorf("PAYMENTS_URL: %w", err)
	}
	cents := int64(DefaultLimit)
	if limit != "" {
		if cents, err = strconv.ParseInt(limit, 10, 64); err != nil || cents < 0 {
			return nil, fmt.Errorf("REFUND_LIMIT %q: want an amount in cents, such as %d", limit, DefaultLimit)
		}
	}
	return Graph(client, cents, opts...), nil
}
