package main

import (
	"go.temporal.io/server/api/historyservice/v1"
	"go.temporal.io/server/api/matchingservice/v1"
	"go.temporal.io/server/chasm"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence/serialization"
	"go.temporal.io/server/common/pprof"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/common/resource"
	server "go.temporal.io/server/service"
	"go.temporal.io/server/service/history"
	"go.temporal.io/server/service/history/replication"
	"go.temporal.io/server/service/matching"
	"go.temporal.io/server/temporal"
	"go.uber.org/fx"
	"google.golang.org/grpc"
)

// module is temporal.TopLevelModule, with a history and a matching that are called in process.
func (p *inProcess) module() fx.Option {
	return fx.Options(
		fx.Provide(
			temporal.NewServerFxImpl,
			temporal.ServerOptionsProvider,
			resource.ArchivalMetadataProvider,
			temporal.TaskCategoryRegistryProvider,
			p.provideHistory,
			p.provideMatching,
			temporal.FrontendServiceProvider,
			temporal.InternalFrontendServiceProvider,
			temporal.WorkerServiceProvider,
			temporal.ApplyClusterMetadataConfigProvider,
		),
		dynamicconfig.Module,
		pprof.Module,
		temporal.TraceExportModule,
		chasm.Module,
		serialization.Module,
		temporal.FxLogAdapter,
		fx.Invoke(temporal.ServerLifetimeHooks),
	)
}

// provideHistory is temporal.HistoryServiceProvider.
func (p *inProcess) provideHistory(params temporal.ServiceProviderParamsCommon) (temporal.ServicesGroupOut, error) {
	app := fx.New(params.GetCommonServiceOptions(primitives.HistoryService),
		history.QueueModule, history.Module, replication.Module,
		fx.Invoke(func(life fx.Lifecycle, handler *history.Handler, guards server.GrpcServerOptionsParams) {
			p.history.serveFor(life, &historyservice.HistoryService_ServiceDesc, handler, guards)
		}))
	return temporal.NewService(app, primitives.HistoryService, params.Logger), app.Err()
}

// provideMatching is temporal.MatchingServiceProvider.
func (p *inProcess) provideMatching(params temporal.ServiceProviderParamsCommon) (temporal.ServicesGroupOut, error) {
	app := fx.New(params.GetCommonServiceOptions(primitives.MatchingService),
		matching.Module,
		fx.Invoke(func(life fx.Lifecycle, handler *matching.Handler, guards server.GrpcServerOptionsParams) {
			p.matching.serveFor(life, &matchingservice.MatchingService_ServiceDesc, handler, guards)
		}))
	return temporal.NewService(app, primitives.MatchingService, params.Logger), app.Err()
}

// serveFor serves while the service runs. The module has added its own start before: what is added last starts last and stops first.
func (c *called) serveFor(life fx.Lifecycle, service *grpc.ServiceDesc, handler any, guards server.GrpcServerOptionsParams) {
	life.Append(fx.StartStopHook(
		func() { c.serve(service, handler, interceptors(guards)) },
		func() { c.Store(nil) },
	))
}

// interceptors are what server.GrpcServerOptionsProvider guards a service with, which gives them to nobody but a gRPC server.
func interceptors(guards server.GrpcServerOptionsParams) []grpc.UnaryServerInterceptor {
	all := []grpc.UnaryServerInterceptor{
		guards.ServiceErrorInterceptor.Intercept,
		metrics.NewServerMetricsContextInjectorInterceptor(),
		metrics.NewServerMetricsTrailerPropagatorInterceptor(guards.Logger),
		guards.TelemetryInterceptor.UnaryIntercept,
	}
	all = append(all, guards.AdditionalInterceptors...)
	if guards.NamespaceRateLimitInterceptor != nil {
		all = append(all, guards.NamespaceRateLimitInterceptor.Intercept)
	}
	all = append(all, guards.RateLimitInterceptor.Intercept)
	if guards.ContextMetadataInterceptor != nil {
		all = append(all, guards.ContextMetadataInterceptor.Intercept)
	}
	return append(all, guards.RetryableInterceptor.Intercept)
}
