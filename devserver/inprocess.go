package main

import (
	"context"
	"sync/atomic"

	"github.com/fullstorydev/grpchan"
	"github.com/fullstorydev/grpchan/inprocgrpc"
	"go.temporal.io/server/client"
	"go.temporal.io/server/common"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/rpc"
	"go.temporal.io/server/common/rpc/interceptor"
	"go.temporal.io/server/common/testing/testhooks"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// inProcess carries the calls that the server's services make to history and to matching. All services are in this process, and the
// network between them, on loopback, takes a quarter of what a short run costs: a message is made bytes, framed, written, read and made a
// message again, twice for each of some ten calls. The services listen as ever, for streams and for Temporal's own tools.
type inProcess struct {
	history, matching called
}

// called is a service as its callers in this process see it: nil until the service has started, and from its stop on. Meanwhile calls go
// over the network, where nobody answers, and callers try again as they do on a cluster.
type called struct {
	atomic.Pointer[inprocgrpc.Channel]
}

// serve has calls of the service reach it as calls of functions, through the interceptors that guard it on the network too.
func (c *called) serve(service *grpc.ServiceDesc, handler any, interceptors []grpc.UnaryServerInterceptor) {
	channel := new(inprocgrpc.Channel).WithCloner(inprocgrpc.CopyFunc(copyMessage))
	grpchan.WithUnaryInterceptors(channel, interceptors...).RegisterService(service, handler)
	c.Store(channel)
}

// intercept is the last of a connection's interceptors: in process it makes the call in the connection's place.
func (c *called) intercept(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	options ...grpc.CallOption) error {
	if channel := c.Load(); channel != nil {
		return channel.Invoke(ctx, method, request, reply, options...)
	}
	return invoke(ctx, method, request, reply, conn, options...)
}

// copyMessage copies what the caller sent, or the service answered: neither sees what the other does with its own. History answers some
// calls with a message that is the caller's only in bytes, to spare itself the decoding of events; such a message is copied in bytes.
func copyMessage(to, from any) error {
	target, source := to.(proto.Message), from.(proto.Message)
	if target.ProtoReflect().Descriptor() == source.ProtoReflect().Descriptor() {
		proto.Reset(target)
		proto.Merge(target, source)
		return nil
	}
	bytes, err := proto.Marshal(source)
	if err != nil {
		return err
	}
	return proto.Unmarshal(bytes, target)
}

// inProcessClients makes the clients that the services have of each other.
type inProcessClients struct {
	client.FactoryProvider
	services *inProcess
}

// NewFactory makes what makes the clients of one service.
func (p inProcessClients) NewFactory(dial common.RPCFactory, monitor membership.Monitor, meter metrics.Handler, settings *dynamicconfig.Collection,
	hooks testhooks.TestHooks, shards int32, logger, throttled log.Logger) client.Factory {
	dial = &inProcessConnections{RPCFactory: dial, services: p.services, meter: meter, logger: logger}
	return p.FactoryProvider.NewFactory(dial, monitor, meter, settings, hooks, shards, logger, throttled)
}

// inProcessConnections makes the connections beneath the clients. One that is never used for a stream is never opened.
type inProcessConnections struct {
	common.RPCFactory
	services *inProcess
	meter    metrics.Handler
	logger   log.Logger
}

// CreateHistoryGRPCConnection makes one to history.
func (c *inProcessConnections) CreateHistoryGRPCConnection(address string) *grpc.ClientConn {
	return c.connect(address, &c.services.history)
}

// CreateMatchingGRPCConnection makes one to matching.
func (c *inProcessConnections) CreateMatchingGRPCConnection(address string) *grpc.ClientConn {
	return c.connect(address, &c.services.matching)
}

func (c *inProcessConnections) connect(address string, service *called) *grpc.ClientConn {
	conn, err := rpc.Dial(address, nil, c.logger, c.meter,
		grpc.WithChainUnaryInterceptor(interceptor.TrailerToContextMetadataInterceptor(c.logger), service.intercept))
	if err != nil {
		c.logger.Fatal("no connection to " + address + ": " + err.Error()) // only an address that is none
	}
	return conn
}
