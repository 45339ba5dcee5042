package sdklog

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// observed returns an SDK logger and what was written to it.
func observed(opts ...zap.Option) (log.Logger, *observer.ObservedLogs) {
	core, logs := observer.New(zapcore.DebugLevel)
	return New(zap.New(core, opts...)), logs
}

func TestTemporalLoggerLevels(t *testing.T) {
	logger, logs := observed()
	logger.Debug("d")
	logger.Info("i")
	logger.Warn("w")
	logger.Error("e")
	var levels []zapcore.Level
	for _, entry := range logs.All() {
		levels = append(levels, entry.Level)
	}
	require.Equal(t, []zapcore.Level{zap.DebugLevel, zap.InfoLevel, zap.WarnLevel, zap.ErrorLevel}, levels)
}

func TestTemporalLoggerFields(t *testing.T) {
	logger, logs := observed()
	logger.Info("m", "Namespace", "default", "Attempt", 3, "Error", errors.New("bad"), 7, "seven",
		zap.String("field", "f"), "after", true, "alone")
	require.Equal(t, map[string]any{
		"Namespace": "default", "Attempt": int64(3), "Error": "bad", "7": "seven", "field": "f", "after": true,
		"no_key": "alone",
	}, logs.All()[0].ContextMap())
}

func TestTemporalLoggerWith(t *testing.T) {
	logger, logs := observed()
	child := log.With(logger, "WorkflowID", "r-7")
	child.Info("one", "step", 1)
	logger.Info("two")
	require.Equal(t, map[string]any{"WorkflowID": "r-7", "step": int64(1)}, logs.All()[0].ContextMap())
	require.Empty(t, logs.All()[1].ContextMap(), "the parent stays as it was")
}

func TestTemporalLoggerCaller(t *testing.T) {
	logger, logs := observed(zap.AddCaller())
	helper := func(l log.Logger) { l.Info("helped") }
	_, _, line, _ := runtime.Caller(0)
	logger.Info("direct")
	helper(log.Skip(logger, 1))
	for i, entry := range logs.All() {
		require.Equal(t, line+1+i, entry.Caller.Line)
	}
}
