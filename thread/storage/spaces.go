package storage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"go.temporal.io/sdk/converter"

	"superstep.dev/job"
)

// SpaceOf names the space of a storage in which the values of a thread of a namespace lie. All workflows of a job share one: its leader
// and its attempts refer to each other's values. What lies there is nobody else's, so a thread is erased with its space.
func SpaceOf(namespace, workflowID string) string {
	owner := workflowID
	if of := job.Of(workflowID); of != "" {
		owner = job.WorkflowID(of)
	}
	sum := sha256.Sum256([]byte(namespace + "\x00" + owner))
	return hex.EncodeToString(sum[:])[:spaceDigits]
}

// within is the key of contexts in which values of a thread are stored.
type within struct{}

// Within marks a call whose values are a thread's, where Temporal's SDK does not know that: an activity that is completed by its token.
func Within(ctx context.Context, namespace, workflowID string) context.Context {
	return context.WithValue(ctx, within{}, SpaceOf(namespace, workflowID))
}

// targetOf is the space of the workflow for which the SDK stores something. What is no workflow's has a space of its own.
func targetOf(ctx converter.StorageDriverStoreContext) string {
	if of, ok := ctx.Target.(converter.StorageDriverWorkflowInfo); ok && of.WorkflowID != "" {
		return SpaceOf(of.Namespace, of.WorkflowID)
	}
	if space, ok := ctx.Context.Value(within{}).(string); ok {
		return space
	}
	return SpaceOf("", "")
}
