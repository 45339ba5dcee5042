package telemetry

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"superstep.dev/internal/figures"
)

func TestWhatTheEnvironmentAsksFor(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		want string
		bad  string // the variable that is refused
	}{
		{name: "nothing"},
		{name: "an endpoint", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, want: overHTTP},
		{name: "one of the signal's own, over gRPC", env: map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://collector:4317",
			"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "grpc"}, want: overGRPC},
		{name: "the default endpoint", env: map[string]string{"OTEL_METRICS_EXPORTER": "otlp"}, want: overHTTP},
		{name: "not this signal", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_METRICS_EXPORTER": "none"}},
		{name: "nothing at all", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_SDK_DISABLED": "true"}},
		{name: "another exporter", env: map[string]string{"OTEL_METRICS_EXPORTER": "prometheus"}, bad: "OTEL_METRICS_EXPORTER"},
		{name: "another protocol", env: map[string]string{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, bad: "OTEL_EXPORTER_OTLP_PROTOCOL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			got, err := metricsSignal.protocol()
			require.Equal(t, c.want, got)
			if c.bad == "" {
				require.NoError(t, err)
				return
			}
			var environment *EnvironmentError
			require.ErrorAs(t, err, &environment)
			require.Equal(t, c.bad, environment.Variable)
		})
	}
}

func TestNobodyWantsMetrics(t *testing.T) {
	m, err := OpenMetrics(false, "superstep", zap.NewNop())
	require.NoError(t, err)
	require.Equal(t, client.MetricsNopHandler, m.Handler)
	require.NoError(t, m.Close(t.Context()))
}

// scrape is what Prometheus would read.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, w.Code)
	return w.Body.String()
}

// TestFiguresAreExportedByTheirNames: each figure reaches Prometheus under the name that the documentation has, with its own buckets.
func TestFiguresAreExportedByTheirNames(t *testing.T) {
	m, err := OpenMetrics(true, "superstep", zap.NewNop())
	require.NoError(t, err)
	for _, f := range figures.All() {
		values := make([]string, len(f.Labels))
		for i := range values {
			values[i] = "v"
		}
		switch f.Kind {
		case figures.Seconds:
			figures.Took(m.Handler, f, "refund", 2*time.Second, values...)
		case figures.Counter:
			figures.Add(m.Handler, f, "refund", 2, values...)
		}
	}
	require.NoError(t, m.Questions(func(context.Context) ([]Open, error) {
		return []Open{{Graph: "refund", About: "doubt", Count: 3, Oldest: time.Now().Add(-time.Hour)}}, nil
	}))
	text := scrape(t, m)
	for _, f := range figures.All() {
		require.Contains(t, text, "# TYPE "+f.Exported()+" "+string(f.Kind))
	}
	require.Contains(t, text, `superstep_supersteps_total{graph="refund"} 2`)
	require.Contains(t, text, `superstep_questions_open{about="doubt",graph="refund"} 3`)
	require.Contains(t, text, `superstep_oldest_question_age_seconds{about="doubt",graph="refund"} 360`)
	require.Contains(t, text, `superstep_recovery_seconds_bucket{graph="refund",le="2.5"} 1`)
	require.Contains(t, text, `superstep_question_age_seconds_bucket{about="v",graph="refund",le="2.592e+06"} 1`)
}

// TestSeriesAreBounded: a label with more values than any graph declares fills no memory.
func TestSeriesAreBounded(t *testing.T) {
	m, err := OpenMetrics(true, "superstep", zap.NewNop())
	require.NoError(t, err)
	for i := range mostSeries + 100 {
		figures.Add(m.Handler, figures.Supersteps, string(rune('a'+i%26))+time.Duration(i).String(), 1)
	}
	require.Contains(t, scrape(t, m), `otel_metric_overflow="true"`)
}

// TestACollectorTakesMetrics over OTLP, as the environment says.
func TestACollectorTakesMetrics(t *testing.T) {
	var bytes atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/metrics" {
			n, _ := io.Copy(io.Discard, r.Body)
			bytes.Add(n)
		}
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	m, err := OpenMetrics(false, "superstep", zap.NewNop())
	require.NoError(t, err)
	figures.Add(m.Handler, figures.Supersteps, "refund", 1)
	require.NoError(t, m.Close(t.Context()))
	require.Positive(t, bytes.Load())
}

// TestACollectorThatIsGone keeps nobody, and the log says so once.
func TestACollectorThatIsGone(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", gone.URL)
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "5")
	t.Setenv("OTEL_METRIC_EXPORT_TIMEOUT", "20")
	core, lines := observer.New(zap.WarnLevel)
	m, err := OpenMetrics(true, "superstep", zap.New(core))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return lines.Len() > 0 }, time.Minute, time.Millisecond)
	began := time.Now()
	for range 10_000 {
		figures.Add(m.Handler, figures.Supersteps, "refund", 1)
	}
	require.Less(t, time.Since(began), 30*time.Second) // to wait for the collector with each would take minutes
	require.Contains(t, scrape(t, m), `superstep_supersteps_total{graph="refund"} 10000`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_ = m.Close(ctx)
	require.Equal(t, 1, lines.Len())
}

// BenchmarkCount is what a run pays for each count: of a superstep two or three.
func BenchmarkCount(b *testing.B) {
	m, err := OpenMetrics(true, "superstep", zap.NewNop())
	require.NoError(b, err)
	for name, handler := range map[string]client.MetricsHandler{"on": m.Handler, "off": client.MetricsNopHandler} {
		b.Run(name, func(b *testing.B) {
			counts := figures.Of(handler, "refund")
			b.ReportAllocs()
			for b.Loop() {
				counts.Add(figures.Tasks, 1, "pay", "done")
			}
		})
	}
}
