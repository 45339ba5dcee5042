package main

import (
	"fmt"
	"net/netip"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
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
	server, err := temporal.NewServer(
		temporal.WithConfig(serverConfig(e, keep)),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(staticHosts(e)),
		temporal.WithLogger(logger),
		temporal.WithDynamicConfigClient(settings(stock, e)),
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
