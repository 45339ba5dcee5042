// Package nexttask lets a run have its next workflow task right behind the one that it is in: what the run stores is on the server
// then, and no timer or activity had to come between. The server hands such a task out with its reply to the worker, when the
// worker's call asks for that (ForceCreateNewWorkflowTask). Temporal's SDK asks only while a local activity takes long, so a
// connection that is made with [Options] asks for a run that [Want] named.
package nexttask

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// thread is a workflow of a namespace. Its run does not matter: a task too many is one that does nothing.
type thread struct{ namespace, id string }

// wanted are the threads whose next workflow task is to follow at once.
var wanted sync.Map

// Want notes that the workflow of that id, which is in a workflow task of this process, is to have the next one right behind it. A
// note that no completed task of a watched connection takes up does nothing.
func Want(namespace, id string) { wanted.Store(thread{namespace, id}, true) }

// Options completes the options of a Temporal client for workers.
func Options(o client.Options) client.Options {
	o.ConnectionOptions.DialOptions = append(slices.Clone(o.ConnectionOptions.DialOptions), grpc.WithChainUnaryInterceptor(intercept))
	return o
}

// resource is what the SDK puts before a workflow's id in its calls' ResourceId.
const resource = "workflow:"

// intercept completes the calls with which workflow tasks are completed. A note is kept until the server has the call, or knows its task
// no more: a call that failed may be repeated.
func intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	completed, ok := req.(*workflowservice.RespondWorkflowTaskCompletedRequest)
	if !ok {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	id, _ := strings.CutPrefix(completed.GetResourceId(), resource)
	of := thread{completed.GetNamespace(), id}
	if _, want := wanted.Load(of); !want {
		return invoke(ctx, method, req, reply, cc, opts...) // which the SDK may have told to ask
	}
	completed.ForceCreateNewWorkflowTask = true
	err := invoke(ctx, method, req, reply, cc, opts...)
	if err == nil || IsOver(err) {
		wanted.Delete(of)
	}
	return err
}

// IsOver reports whether the error of a call says that the server knows its workflow task no more: the task has timed out, or the reply to
// an earlier try was lost.
func IsOver(err error) bool {
	var gone *serviceerror.NotFound
	return errors.As(err, &gone) || status.Code(err) == codes.NotFound
}
