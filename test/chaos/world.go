package main

import (
	"context"
	"io"
	"math/rand/v2"

	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/examples/refund/payments"
	"superstep.dev/test/processes"
	"superstep.dev/thread"
)

// options are the command line.
type options struct {
	kills   int
	freezes int
	late    int
	lateAs  string
	threads int
	workers int
	seed    uint64
	mode    string
}

// world is the servers that all modes share.
type world struct {
	set      *processes.Set
	dir      string
	address  string
	payURL   string
	temporal client.Client
	pay      *payments.Client
	random   *rand.Rand
	notes    io.Writer // how far it is, for people
}

func newWorld(ctx context.Context, set *processes.Set, dir, address, payURL string) (*world, error) {
	temporal, err := client.DialContext(ctx, client.Options{HostPort: address, Logger: silent{}})
	if err != nil {
		return nil, err
	}
	pay, err := payments.NewClient(payURL)
	return &world{set: set, dir: dir, address: address, payURL: payURL, temporal: temporal, pay: pay,
		random: rand.New(rand.NewPCG(1, 0)), notes: io.Discard}, err
}

// mode is one durability.
type mode struct {
	name    string
	request thread.StartRequest
}

func modes() []mode {
	return []mode{
		{"sync", thread.StartRequest{}},
		{"fused", thread.StartRequest{Fused: true}},
		{"async", thread.StartRequest{Durability: superstep.DurabilityAsync}},
		{"exit", thread.StartRequest{Durability: superstep.DurabilityExit}},
	}
}

// silent drops the log lines of the Temporal client: killed workers make many.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
