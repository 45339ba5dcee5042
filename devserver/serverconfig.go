package main

import (
	"fmt"
	"net/netip"
	"time"

	"go.temporal.io/server/client"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
)

const (
	clusterName = "active" // the name Temporal's own development server uses, so that its files open here

	// How failover versions of several clusters would be told apart. Never used
	// here, but the server insists on them, and keeps them in the file.
	failoverVersionIncrement = 10
	initialFailoverVersion   = 1
)

// newServer builds the Temporal server, which also makes it listen; it serves
// from Start on. The ports in e must be free.
func newServer(e endpoints, keep config.Persistence, stock bool, logger log.Logger) (temporal.Server, error) {
	clients, services := client.NewFactoryProvider(), temporal.TopLevelModule
	if !stock {
		p := new(inProcess)
		clients, services = inProcessClients{FactoryProvider: clients, services: p}, p.module()
	}
	server, err := temporal.NewServerFx(services,
		temporal.WithConfig(serverConfig(e, keep)),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(staticHosts(e)),
		temporal.WithLogger(logger),
		temporal.WithDynamicConfigClient(settings(stock, e)),
		temporal.WithClientFactoryProvider(oneFrontend{clients}),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper {
			return authorization.NewNoopClaimMapper()
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("build the Temporal server (if its database is to blame, another one helps): %w", err)
	}
	return server, nil
}

func serverConfig(e endpoints, keep config.Persistence) *config.Config {
	frontend, http := dialable(e.frontend).String(), dialable(e.http).String()
	return &config.Config{
		Persistence: keep,
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: failoverVersionIncrement,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{clusterName: {
				Enabled:                true,
				InitialFailoverVersion: initialFailoverVersion,
				RPCAddress:             frontend,
				HTTPAddress:            http,
			}},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services: map[string]config.Service{
			string(primitives.FrontendService): service(e.frontend, e.http.Port()),
			string(primitives.HistoryService):  service(e.history, 0),
			string(primitives.MatchingService): service(e.matching, 0),
			string(primitives.WorkerService):   service(e.worker, 0),
		},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: config.ArchivalDisabled},
			Visibility: config.VisibilityArchival{State: config.ArchivalDisabled},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: config.ArchivalDisabled},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: config.ArchivalDisabled},
		}},
		PublicClient: config.PublicClient{HostPort: frontend, HTTPHostPort: http},
	}
}

// service listens for gRPC on addr, and for HTTP on the given port of the same
// address unless that is 0.
func service(addr netip.AddrPort, httpPort uint16) config.Service {
	return config.Service{RPC: config.RPC{
		GRPCPort: int(addr.Port()),
		HTTPPort: int(httpPort),
		BindOnIP: addr.Addr().String(),
	}}
}

// staticHosts tells each service where the others are, which spares the server
// its gossip between nodes: the ports it needs and the seconds it takes to settle.
func staticHosts(e endpoints) map[primitives.ServiceName]static.Hosts {
	return map[primitives.ServiceName]static.Hosts{
		primitives.FrontendService: static.SingleLocalHost(dialable(e.frontend).String()),
		primitives.HistoryService:  static.SingleLocalHost(e.history.String()),
		primitives.MatchingService: static.SingleLocalHost(e.matching.String()),
		primitives.WorkerService:   static.SingleLocalHost(e.worker.String()),
	}
}

// settings is the server's dynamic configuration.
//
// The rule for a value to stand here: it makes the server faster and changes
// nothing of what a run may do. The limits on history, payloads, updates and
// signals stay as Temporal ships them, so that whatever works here works on a
// stock cluster too.
func settings(stock bool, e endpoints) dynamicconfig.StaticClient {
	if stock {
		return embeddingSettings(e)
	}
	s := embeddingSettings(e)
	for key, value := range tunedSettings() {
		s[key] = value
	}
	return s
}

// embeddingSettings are what any server inside a developer's tool needs; they
// touch no timing.
func embeddingSettings(e endpoints) dynamicconfig.StaticClient {
	return dynamicconfig.StaticClient{
		// A development server does not call home.
		dynamicconfig.EnableServerVersionCheck.Key(): false,
		// No page of another site calls the API over HTTP, by a name of its own that
		// resolves to this machine.
		dynamicconfig.FrontendHTTPAllowedHosts.Key(): []string{"localhost:*", dialable(e.http).Addr().String() + ":*"},
	}
}

func tunedSettings() dynamicconfig.StaticClient {
	const (
		pollRPS = 10_000 // per shard and queue; stock 20
		rps     = 100_000
	)
	return dynamicconfig.StaticClient{
		// A queue processor may load tasks this many times a second per shard.
		// At the stock 20, a run whose steps follow one another waits up to 50 ms
		// for each: after a short burst it takes 20 steps a second however idle
		// the server is. Transfer carries workflow and activity tasks and child
		// workflows; timer carries timeouts, retries and sleeps; outbound Nexus
		// calls and callbacks.
		dynamicconfig.TransferProcessorMaxPollRPS.Key(): pollRPS,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():    pollRPS,
		dynamicconfig.OutboundProcessorMaxPollRPS.Key(): pollRPS,

		// What lists and counts show is written twice a second, many records at a
		// time, and so is up to half a second late under load. To write each at once
		// takes the database, and the run's lock, while the run itself waits for
		// both: a short run then takes a fifth longer. The records are stored with
		// the run and none is lost. The stock 100 records a time would bound the
		// server to 100 short runs a second.
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): 2,
		dynamicconfig.VisibilityTaskBatchSize.Key():       1_000,

		// Stretches of this queue that are not through when it stores its place can be set aside at stock, for a second reader, which reads only
		// what the first one leaves of its two times a second: under load nothing. A run is removed no earlier than its records are written, and
		// would wait as long. One reader reads them all.
		dynamicconfig.VisibilityQueueMaxReaderCount.Key(): 1,

		// A timer queue that loads three times within a second counts as stuck at stock: what is left of that second is set aside, and the
		// queue's place is stored and what is done deleted, each time. With timers to the millisecond several loads a second are how it works.
		dynamicconfig.QueueReaderStuckCriticalAttempts.Key(): 0,

		// A timer fires up to this much late, so that several are loaded together.
		// The stock 1 s turns a sleep of 1 ms, and the wait before every activity
		// retry, into a second.
		dynamicconfig.TimerProcessorMaxTimeShift.Key(): time.Millisecond,

		// Tasks go into one partition of their queue. With the stock 4 a task often
		// lands where no worker polls and is forwarded, at most ten times a second:
		// a step not handed over eagerly then takes 20 ms instead of 11. All 4 are
		// still read, because what an earlier start on stock settings left in the
		// others would otherwise never be found again.
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,

		// A run that continues as new waits until it is this old. The stock 1 s
		// shows whenever a short run continues.
		dynamicconfig.WorkflowIdReuseMinimalInterval.Key(): 10 * time.Millisecond,

		// The stock 10 a second for lists and counts is used up by one open page of
		// the Web UI next to one script.
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(): 1_000,

		// Calls a second per service. Stock values (1,200 to 3,000) protect a
		// cluster's tenants from each other; here they would throttle the one
		// user's own load tests.
		dynamicconfig.FrontendRPS.Key():                        rps,
		dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key(): rps,
		dynamicconfig.HistoryRPS.Key():                         rps,
		dynamicconfig.MatchingRPS.Key():                        rps,

		// The same for calls to the database, which here is a file of our own: it
		// says itself how much it can take. The loading of tasks above is also
		// bounded by a share of history's.
		dynamicconfig.FrontendPersistenceMaxQPS.Key(): rps,
		dynamicconfig.HistoryPersistenceMaxQPS.Key():  rps,
		dynamicconfig.MatchingPersistenceMaxQPS.Key(): rps,

		// How much of a run lies in a storage, for the Web UI: to count that walks
		// through every event, a thirtieth of the server's processor time.
		dynamicconfig.ExternalPayloadsEnabled.Key(): false,

		// A search attribute that somebody adds can be used after this time. To read
		// them anew for each use, as Temporal's own development server does, would
		// cost every run several milliseconds.
		dynamicconfig.NamespaceCacheRefreshInterval.Key(): 500 * time.Millisecond,
	}
}
