package chat

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"superstep.dev"
	"superstep.dev/examples/refund/payments"
)

// FromEnv returns the graph with a [Clerk] as the environment says: PAYMENTS_URL is the payments service (http://127.0.0.1:8090), and
// CHAT_PACE the time that the clerk takes for a word (40ms). It ends the process with one line when one of them is no use: it is for
// mains.
func FromEnv() *superstep.Graph[State] {
	g, err := fromEnv(os.Getenv("PAYMENTS_URL"), os.Getenv("CHAT_PACE"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "chat:", err)
		os.Exit(2)
	}
	return g
}

func fromEnv(url, pace string) (*superstep.Graph[State], error) {
	client, err := payments.NewClient(cmp.Or(url, "http://127.0.0.1:8090"))
	if err != nil {
		return nil, fmt.Errorf("PAYMENTS_URL: %w", err)
	}
	each, err := time.ParseDuration(cmp.Or(pace, "40ms"))
	if err != nil || each < 0 || each > time.Minute {
		return nil, fmt.Errorf("CHAT_PACE %q: want a time up to a minute, such as 40ms", pace)
	}
	return Graph(Clerk{Pace: each}, client), nil
}
