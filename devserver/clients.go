package main

import (
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/client"
	"go.temporal.io/server/common"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/testing/testhooks"
	"google.golang.org/grpc"
)

// oneFrontend makes the clients that the server's services have of each other, with one of the frontend for all. Server 1.32 makes one for
// each call that lists, adds or removes search attributes, as each page of the Web UI does, and closes none: two open files and some
// goroutines each, until it has no file left and refuses everybody.
type oneFrontend struct{ client.FactoryProvider }

// NewFactory makes what makes the clients of one service.
func (o oneFrontend) NewFactory(rpc common.RPCFactory, monitor membership.Monitor, meter metrics.Handler, settings *dynamicconfig.Collection,
	hooks testhooks.TestHooks, shards int32, logger, throttled log.Logger) client.Factory {
	return &oneFrontendFactory{Factory: o.FactoryProvider.NewFactory(rpc, monitor, meter, settings, hooks, shards, logger, throttled)}
}

// oneFrontendFactory remembers the first client of the frontend that it made. Everybody asks for the same time limits.
type oneFrontendFactory struct {
	client.Factory
	making   sync.Mutex
	conn     grpc.ClientConnInterface
	frontend workflowservice.WorkflowServiceClient // nil before the first
}

// NewLocalFrontendClientWithTimeout returns it. An error is not remembered.
func (f *oneFrontendFactory) NewLocalFrontendClientWithTimeout(timeout, longPoll time.Duration) (
	grpc.ClientConnInterface, workflowservice.WorkflowServiceClient, error) {
	f.making.Lock()
	defer f.making.Unlock()
	if f.frontend == nil {
		conn, frontend, err := f.Factory.NewLocalFrontendClientWithTimeout(timeout, longPoll)
		if err != nil {
			return nil, nil, err
		}
		f.conn, f.frontend = conn, frontend
	}
	return f.conn, f.frontend, nil
}
