// Package lateness tells how late workflow tasks have come to this process lately: how long the server had each before a worker took it.
// Where that is long, server or workers are busy, and heartbeats take longer too. A connection that is made with [Options] is watched.
package lateness

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
)

// halved is after how long what was late counts half.
const halved = time.Second

// gauge is the latest of late tasks, each of which counts less as time goes by. It is safe for concurrent use.
type gauge struct {
	mu   sync.Mutex
	late time.Duration
	at   time.Time // when it was that
}

var tasks gauge

// Now is how late tasks come; 0 where none was late lately, or nobody watches.
func Now() time.Duration { return tasks.now(time.Now()) }

func (g *gauge) now(at time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.left(at)
}

// left is what is left of the latest by that time; mu is held.
func (g *gauge) left(at time.Time) time.Duration {
	if since := max(0, at.Sub(g.at)); since < 20*halved {
		return time.Duration(float64(g.late) / float64(int(1)<<(since/halved)))
	}
	return 0
}

func (g *gauge) note(late time.Duration, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if late >= g.left(at) {
		g.late, g.at = late, at
	}
}

// Options completes the options of a Temporal client for workers.
func Options(o client.Options) client.Options {
	o.ConnectionOptions.DialOptions = append(slices.Clone(o.ConnectionOptions.DialOptions), grpc.WithChainUnaryInterceptor(intercept))
	return o
}

// intercept notes how long ago the server had the tasks that a worker is given: both times are the server's.
func intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	if task, ok := reply.(*workflowservice.PollWorkflowTaskQueueResponse); ok && err == nil && task.GetScheduledTime() != nil && task.GetStartedTime() != nil {
		tasks.note(task.GetStartedTime().AsTime().Sub(task.GetScheduledTime().AsTime()), time.Now())
	}
	return err
}
