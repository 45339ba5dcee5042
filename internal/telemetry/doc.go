// Package telemetry exports what a worker measures: to Prometheus, which scrapes it, and over OTLP to a collector that the
// standard OTEL_* environment variables name. A worker whose collector is gone goes on as before: what waits to be exported is
// bounded, what does not fit is dropped, and the log says so once.
//
//	environment   what the environment asks for
//	traces        spans of runs
//	metrics       figures of the worker, of Temporal's SDK, of Go and of the process
package telemetry
