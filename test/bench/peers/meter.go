package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"superstep.dev/test/bench/testbed"
)

// calls counts remote calls by method, each before it is sent: whoever has seen what a call brings about finds it counted. It is safe for
// concurrent use.
type calls struct {
	mu       sync.Mutex
	byMethod map[string]int
}

func newCalls() *calls { return &calls{byMethod: map[string]int{}} }

// option makes a connection count its calls.
func (c *calls) option() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(c.count)
}

func (c *calls) count(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, do grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	c.mu.Lock()
	c.byMethod[path.Base(method)]++
	c.mu.Unlock()
	return do(ctx, method, req, reply, cc, opts...)
}

func (c *calls) now() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.byMethod)
}

// ServeHTTP tells another process what was counted.
func (c *calls) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	_ = json.NewEncoder(w).Encode(c.now()) // who asked has gone
}

// source is where the costs of a way are read: its client's process, its worker's, and the server's. Each may be missing.
type source struct {
	clientCalls *calls
	workerCalls string // a URL
	// The processes' ids. A worker within the client's process has none of its own; the server's are its own and its database's.
	clientPID, workerPID int
	serverPIDs           []int
	// ended is the processor time, in nanoseconds, of processes of the client that have ended; nil when it has none.
	ended *atomic.Int64
	// database is the server's, or the saver's; values is the directory beside it for large values, "" for none.
	database database
	values   string
	// temporal reads the size of histories, over a connection that is not counted.
	temporal client.Client
}

// reading is what was counted since a process began.
type reading struct {
	client, worker                  map[string]int
	clientCPU, workerCPU, serverCPU float64
	commits, stored                 float64
	history                         history
}

// history is the size of a thread's newest run.
type history struct {
	run           string
	events, bytes int64
}

// read takes a reading; thread is that whose history is looked at, "" for none.
func (s *source) read(ctx context.Context, thread string) (r reading, err error) {
	r = reading{clientCPU: cpu(s.clientPID), workerCPU: cpu(s.workerPID), commits: math.NaN(), stored: math.NaN()}
	for _, pid := range s.serverPIDs {
		r.serverCPU += cpu(pid)
	}
	if s.ended != nil {
		r.clientCPU += float64(s.ended.Load()) / 1e6
	}
	if s.database != nil {
		r.commits, r.stored = s.database.read()
		r.stored += filesOf(s.values)
	}
	if s.clientCalls != nil {
		r.client = s.clientCalls.now()
	}
	if s.workerCalls != "" {
		if err := call(ctx, s.workerCalls, nil, &r.worker); err != nil {
			return r, err
		}
	}
	if s.temporal == nil || thread == "" {
		return r, nil
	}
	described, err := s.temporal.DescribeWorkflowExecution(ctx, thread, "")
	if err != nil {
		return r, fmt.Errorf("the size of the history: %w", err)
	}
	info := described.GetWorkflowExecutionInfo()
	r.history = history{info.GetExecution().GetRunId(), info.GetHistoryLength(), info.GetHistorySizeBytes()}
	return r, nil
}

// cpu is the processor time of a process; 0 for none, and where the system does not tell. This bench's own leaves its
// children out: they are the others.
func cpu(pid int) float64 {
	used := 0.0
	switch pid {
	case 0:
	case os.Getpid():
		used = testbed.CPU(pid)
	default:
		used = testbed.TreeCPU(pid)
	}
	if math.IsNaN(used) {
		return 0
	}
	return used
}

// cost is what one operation took, on average over those of a round.
type cost struct {
	ClientCalls map[string]float64 `json:"client_calls,omitempty"`
	WorkerCalls map[string]float64 `json:"worker_calls,omitempty"`
	ClientCPU   float64            `json:"client_cpu_ms"`
	WorkerCPU   float64            `json:"worker_cpu_ms"`
	ServerCPU   float64            `json:"server_cpu_ms"`
	// Commits are the transactions that wrote, and Stored by how many bytes the database and the files beside it grew; nil where
	// nobody counts.
	Commits *float64 `json:"commits,omitempty"`
	Stored  *float64 `json:"stored_bytes,omitempty"`
	Events  float64  `json:"events,omitempty"`
	Bytes   float64  `json:"history_bytes,omitempty"`
	// LongestTask is how long the server waited for the slowest workflow task, in milliseconds; 0 where nobody looks.
	LongestTask float64 `json:"longest_task_ms,omitempty"`
}

// costOf is what n operations cost between two readings, each.
func costOf(before, after reading, n int) cost {
	each := float64(n)
	less := func(now, then map[string]int) map[string]float64 {
		out := map[string]float64{}
		for method, count := range now {
			if d := count - then[method]; d != 0 {
				out[method] = float64(d) / each
			}
		}
		return out
	}
	c := cost{
		ClientCalls: less(after.client, before.client), WorkerCalls: less(after.worker, before.worker),
		ClientCPU: (after.clientCPU - before.clientCPU) / each, WorkerCPU: (after.workerCPU - before.workerCPU) / each,
		ServerCPU: (after.serverCPU - before.serverCPU) / each,
		Events:    float64(after.history.events), Bytes: float64(after.history.bytes),
	}
	if commits := (after.commits - before.commits) / each; !math.IsNaN(commits) {
		c.Commits = &commits
	}
	if stored := (after.stored - before.stored) / each; !math.IsNaN(stored) {
		c.Stored = &stored
	}
	if before.history.run != "" && before.history.run == after.history.run { // a run that took them all
		c.Events = (c.Events - float64(before.history.events)) / each
		c.Bytes = (c.Bytes - float64(before.history.bytes)) / each
	}
	return c
}

// cpu is the processor time of all processes.
func (c cost) cpu() float64 { return c.ClientCPU + c.WorkerCPU + c.ServerCPU }

// longestTask is how long the slowest workflow task of a thread took, of all its runs, from when a worker had it until the server
// had its result.
func longestTask(ctx context.Context, c client.Client, thread string) (longest time.Duration, err error) {
	for run := ""; ; {
		events := c.GetWorkflowHistory(ctx, thread, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		var taken time.Time
		before := ""
		for events.HasNext() {
			event, err := events.Next()
			if err != nil {
				return 0, fmt.Errorf("the history of thread %s: %w", thread, err)
			}
			switch at := event.GetEventTime().AsTime(); event.GetEventType() {
			case enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
				before = event.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
			case enums.EVENT_TYPE_WORKFLOW_TASK_STARTED:
				taken = at
			case enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, enums.EVENT_TYPE_WORKFLOW_TASK_FAILED, enums.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
				if !taken.IsZero() {
					longest = max(longest, at.Sub(taken))
				}
				taken = time.Time{}
			}
		}
		if before == "" {
			return longest, nil
		}
		run = before
	}
}
