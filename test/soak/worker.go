package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"superstep.dev"
)

// workerCommand makes this program a worker.
const workerCommand = "worker"

// The lines that a worker writes: it takes tasks, and it hangs where it shall die.
const (
	lineReady   = "worker takes tasks"
	lineReached = "worker hangs"
)

// The moments at which a worker hangs until it is killed.
const (
	beforeContinue = "before" // the server knows nothing of the next run
	afterContinue  = "after"  // the server has begun it, and the worker does not know
)

// serve serves the graph, and returns the exit code.
func serve(args []string) int {
	f := flag.NewFlagSet(workerCommand, flag.ContinueOnError)
	address := f.String("address", "", "host:port of the Temporal server")
	queue := f.String("queue", "", "task queue")
	moment := f.String("die", "", "hang `before` or after a thread is continued as a new run")
	if err := f.Parse(args); err != nil {
		return 2
	}
	if err := work(*address, *queue, *moment); err != nil {
		fmt.Fprintln(os.Stderr, "soak worker:", err)
		return 1
	}
	return 0
}

func work(address, queue, moment string) error {
	ctx := context.Background()
	temporal, err := client.DialContext(ctx, superstep.Watched(client.Options{HostPort: address, Logger: silent{}, ConnectionOptions: client.ConnectionOptions{
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(hang(moment))},
	}}))
	if err != nil {
		return err
	}
	defer temporal.Close()
	w, err := superstep.NewWorker(temporal, superstep.WorkerConfig{TaskQueue: queue,
		Graphs: []superstep.Runnable{soakGraph()}, OnReady: func() { fmt.Println(lineReady) }})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// hang stops the worker's decision to continue a thread as a new run at that moment.
func hang(moment string) grpc.UnaryClientInterceptor {
	reach := func(at string) {
		if at == moment {
			fmt.Println(lineReached)
			select {} // until the kill
		}
	}
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		decision, ok := req.(*workflowservice.RespondWorkflowTaskCompletedRequest)
		if !ok || !isContinue(decision) {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		reach(beforeContinue)
		err := invoke(ctx, method, req, reply, cc, opts...)
		if err == nil {
			reach(afterContinue)
		}
		return err
	}
}

func isContinue(r *workflowservice.RespondWorkflowTaskCompletedRequest) bool {
	for _, c := range r.GetCommands() {
		if c.GetCommandType() == enumspb.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION {
			return true
		}
	}
	return false
}

// silent drops the log lines of the Temporal client: killed workers make many.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
