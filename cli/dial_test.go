package cli

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"superstep.dev/thread"
)

// frontend is as much of a Temporal server as a first contact needs.
type frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer
	mu  sync.Mutex
	key string // the API key it wants, "" for none
}

func (f *frontend) set(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.key = key
}

func (f *frontend) GetSystemInfo(ctx context.Context, _ *workflowservice.GetSystemInfoRequest) (
	*workflowservice.GetSystemInfoResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := md.Get("authorization"); f.key != "" && (len(got) != 1 || got[0] != "Bearer "+f.key) {
		return nil, status.Error(codes.Unauthenticated, "who are you")
	}
	return &workflowservice.GetSystemInfoResponse{}, nil
}

// startFrontend serves a frontend and returns its address.
func startFrontend(t *testing.T, f *frontend, opts ...grpc.ServerOption) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(opts...)
	workflowservice.RegisterWorkflowServiceServer(server, f)
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(listener) // ends with Stop
	}()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return listener.Addr().String()
}

func dialWith(t *testing.T, env environment, args ...string) error {
	opts, _, err := optionsOf(t, env, args...)
	require.NoError(t, err)
	opts.Logger = silentLogger()
	c, err := dial(t.Context(), opts)
	if err == nil {
		c.Close()
	}
	return err
}

func TestDial(t *testing.T) {
	require.NoError(t, dialWith(t, environment{}, "--address", startFrontend(t, &frontend{})))
}

func TestDialOverTLS(t *testing.T) {
	cert, key := certificate(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	creds := credentials.NewServerTLSFromCert(&pair)
	address := startFrontend(t, &frontend{key: "s3cr3t"}, grpc.Creds(creds))
	trust := []string{"--address", address, "--tls-ca", cert, "--tls-server-name", "temporal.example"}

	require.NoError(t, dialWith(t, environment{"TEMPORAL_API_KEY": "s3cr3t"}, trust...))

	err = dialWith(t, environment{"TEMPORAL_API_KEY": "wr0ng"}, trust...)
	require.ErrorIs(t, err, thread.ErrNoServer)
	require.Equal(t, "the server at "+address+" does not accept the credentials: who are you. "+
		"Check TEMPORAL_API_KEY or --api-key-file", err.Error())
	require.True(t, isRefusal(err), "a worker need not ask again")

	err = dialWith(t, environment{"TEMPORAL_TLS": "true"}, "--address", address)
	require.ErrorIs(t, err, thread.ErrNoServer)
	require.ErrorContains(t, err, "no TLS connection to "+address)
	require.ErrorContains(t, err, "Check --tls-ca")
}

func TestDialNobody(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	err = dialWith(t, environment{}, "--address", address)
	require.ErrorIs(t, err, thread.ErrNoServer)
	require.Equal(t, "no Temporal server at "+address+". Start one (Superstep's devserver, or temporal server start-dev), or name another one with --address", err.Error())
	require.False(t, isRefusal(err))
}

func TestDialErrorElsewhere(t *testing.T) {
	err := dialError(client.Options{HostPort: "temporal.example:7233"}, context.DeadlineExceeded)
	require.Equal(t, "no Temporal server at temporal.example:7233: context deadline exceeded. "+
		"Check --address or TEMPORAL_ADDRESS", err.Error())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	for address, want := range map[string]bool{
		"localhost:1": true, "127.3.2.1:1": true, "[::1]:1": true, "10.0.0.1:1": false, "dns:///x": false,
	} {
		require.Equal(t, want, isLoopback(address), address)
	}
}
