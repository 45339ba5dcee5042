package telemetry

import (
	"cmp"
	"fmt"
	"os"
	"strings"
)

// signal is "METRICS" or "TRACES", as the names of environment variables have it.
type signal string

const (
	metricsSignal signal = "METRICS"
	tracesSignal  signal = "TRACES"
)

// The protocols of OTLP.
const (
	overHTTP = "http/protobuf"
	overGRPC = "grpc"
)

// EnvironmentError says which variable of the environment cannot be used.
type EnvironmentError struct{ Variable, Value, Want string }

func (e *EnvironmentError) Error() string {
	return fmt.Sprintf("%s=%q: want %s", e.Variable, e.Value, e.Want)
}

// protocol is how a signal is exported over OTLP, "" for not at all: without OTEL_EXPORTER_OTLP_ENDPOINT, or the signal's own,
// nobody has named a collector, and nothing is sent to a port of this machine that nobody has opened.
func (s signal) protocol() (string, error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return "", nil
	}
	exporter := "OTEL_" + string(s) + "_EXPORTER"
	switch name := os.Getenv(exporter); name {
	case "none":
		return "", nil
	case "otlp":
	case "":
		if cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_"+string(s)+"_ENDPOINT")) == "" {
			return "", nil
		}
	default:
		return "", &EnvironmentError{exporter, name, "otlp or none; --metrics-addr serves Prometheus"}
	}
	variable := "OTEL_EXPORTER_OTLP_" + string(s) + "_PROTOCOL"
	if os.Getenv(variable) == "" {
		variable = "OTEL_EXPORTER_OTLP_PROTOCOL"
	}
	switch name := cmp.Or(os.Getenv(variable), overHTTP); name {
	case overHTTP, overGRPC:
		return name, nil
	default:
		return "", &EnvironmentError{variable, name, overHTTP + " or " + overGRPC}
	}
}
