package attributes_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"superstep.dev/internal/attributes"
	"superstep.dev/workflows/protocol"
)

// server answers as it is told, and counts how often it was asked. Where store is of SQL, the description of the namespace has the
// answer; else a list of the operator's service has it.
type server struct {
	workflowservice.WorkflowServiceClient
	operatorservice.OperatorServiceClient
	store         string
	asked, listed atomic.Int32
	answer        func(ctx context.Context) ([]string, error)
}

func (s *server) DescribeNamespace(ctx context.Context, _ *workflowservice.DescribeNamespaceRequest, _ ...grpc.CallOption) (
	*workflowservice.DescribeNamespaceResponse, error) {
	s.asked.Add(1)
	names, err := s.answer(ctx)
	aliases := map[string]string{}
	if s.store == "elasticsearch" {
		names = nil
	}
	for i, name := range names {
		aliases[fmt.Sprintf("Keyword%02d", i+1)] = name
	}
	return &workflowservice.DescribeNamespaceResponse{Config: &namespacepb.NamespaceConfig{CustomSearchAttributeAliases: aliases}}, err
}

func (s *server) GetClusterInfo(context.Context, *workflowservice.GetClusterInfoRequest, ...grpc.CallOption) (
	*workflowservice.GetClusterInfoResponse, error) {
	return &workflowservice.GetClusterInfoResponse{VisibilityStore: s.store}, nil
}

func (s *server) ListSearchAttributes(ctx context.Context, _ *operatorservice.ListSearchAttributesRequest, _ ...grpc.CallOption) (
	*operatorservice.ListSearchAttributesResponse, error) {
	s.listed.Add(1)
	names, err := s.answer(ctx)
	reply := &operatorservice.ListSearchAttributesResponse{CustomAttributes: map[string]enumspb.IndexedValueType{}}
	for _, name := range names {
		reply.CustomAttributes[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	return reply, err
}

var (
	runs = []string{protocol.AttributeGraph, protocol.AttributeStatus, protocol.AttributeNodes, protocol.AttributeQuestions, protocol.AttributeParent}
	all  = append(runs[:len(runs):len(runs)], protocol.AttributeApprovers, protocol.AttributeDue, protocol.AttributeRisk)
)

func TestReadWantsAllOfAGroup(t *testing.T) {
	for name, c := range map[string]struct {
		names []string
		err   error
		want  protocol.Found
	}{
		"all":                   {all, nil, protocol.Found{Lists: true, Inbox: true}},
		"runs only":             {runs, nil, protocol.Found{Lists: true}},
		"one of a run missing":  {all[1:], nil, protocol.Found{}},
		"one of those missing":  {all[:len(all)-1], nil, protocol.Found{Lists: true}},
		"a server that is mute": {nil, serviceerror.NewUnimplemented("no"), protocol.Found{}},
		"nobody may ask":        {nil, serviceerror.NewPermissionDenied("no", ""), protocol.Found{}},
	} {
		for _, store := range []string{"elasticsearch", "postgres12_pgx", "sqlite", "mysql8"} {
			s := &server{store: store, answer: func(context.Context) ([]string, error) { return c.names, c.err }}
			if got, err := attributes.Read(t.Context(), s, s, "default"); err != nil || got != c.want {
				t.Errorf("%s of %s: %+v, %v, want %+v", name, store, got, err, c.want)
			}
			// A server of SQL never closes the connection that it opens for this.
			if listed := s.listed.Load() > 0; listed != (store == "elasticsearch") {
				t.Errorf("%s of %s: it was asked for a list: %t", name, store, listed)
			}
		}
	}
	s := &server{answer: func(context.Context) ([]string, error) { return nil, serviceerror.NewUnavailable("no") }}
	if _, err := attributes.Read(t.Context(), s, s, "default"); err == nil {
		t.Error("a server that is not there was served without")
	}
}

// TestAWatchAsksForWhatIsMissing, and not for what it knows.
func TestAWatchAsksForWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		s := &server{answer: func(context.Context) ([]string, error) { return names, nil }}
		w := attributes.NewWatch(s, s)
		want := func(found protocol.Found, asked int32) {
			t.Helper()
			if got, err := w.Found("default"); err != nil || got != found || s.asked.Load() != asked {
				t.Errorf("%+v, %v by %d questions, want %+v by %d", got, err, s.asked.Load(), found, asked)
			}
		}
		want(protocol.Found{}, 1)
		names = all
		want(protocol.Found{}, 1) // it has just asked
		time.Sleep(2 * time.Second)
		want(protocol.Found{Lists: true, Inbox: true}, 2)
		names = nil
		time.Sleep(time.Hour)
		want(protocol.Found{Lists: true, Inbox: true}, 2)
	})
}

// TestAWatchDoesNotGuess: before the first answer nobody knows, and a slow server keeps nobody waiting.
func TestAWatchDoesNotGuess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		broken := errors.New("no connection")
		s := &server{answer: func(context.Context) ([]string, error) { <-release; return nil, broken }}
		w := attributes.NewWatch(s, s)
		began := time.Now()
		if _, err := w.Found("default"); err == nil || time.Since(began) > time.Second {
			t.Errorf("after %v it says %v", time.Since(began), err)
		}
		close(release)
		if _, err := w.Found("default"); !errors.Is(err, broken) {
			t.Errorf("it says %v", err)
		}
		s.answer = func(context.Context) ([]string, error) { return all, nil }
		if found, err := w.Found("default"); err != nil || !found.Inbox {
			t.Errorf("it says %+v, %v", found, err)
		}
	})
}
