package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"superstep.dev"
)

// observed returns an SDK logger and what was written to it.
func observed(opts ...zap.Option) (log.Logger, *observer.ObservedLogs) {
	core, logs := observer.New(zapcore.DebugLevel)
	return newTemporalLogger(zap.New(core, opts...)), logs
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

func TestLoggerFormats(t *testing.T) {
	var out bytes.Buffer
	logger, err := newLogger(&out, "json", "warn")
	require.NoError(t, err)
	logger.Info("too low")
	logger.Warn("kept", zap.Duration("wait", 2*time.Second))
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	require.Equal(t, "kept", line["msg"])
	require.Equal(t, "2s", line["wait"])

	out.Reset()
	logger, err = newLogger(&out, "console", "debug")
	require.NoError(t, err)
	logger.Debug("shown")
	require.Contains(t, out.String(), "shown")

	for _, bad := range [][2]string{{"xml", "info"}, {"json", "loud"}, {"json", "fatal"}} {
		_, err = newLogger(&out, bad[0], bad[1])
		require.ErrorIs(t, err, superstep.ErrBadInput)
	}
}

// TestLogsHoldNoSecrets: neither under a telling name, nor within a text.
func TestLogsHoldNoSecrets(t *testing.T) {
	var out bytes.Buffer
	a := &app{secrets: []string{"s3cr3t-key"}}
	zapped, err := newLogger(redactingWriter{a, &out}, "json", "debug")
	require.NoError(t, err)
	logger := newTemporalLogger(zapped)
	log.With(logger, "api-key", "hunter2").Info("m", "Authorization", "hunter2", "taskToken", "hunter2", "tokens", 812)
	zapped.Error("rpc failed", zap.Error(errors.New("Bearer s3cr3t-key refused")))
	require.NotContains(t, out.String(), "hunter2")
	require.NotContains(t, out.String(), "s3cr3t-key")
	require.Contains(t, out.String(), `"tokens":812`)
	require.Contains(t, out.String(), "Bearer [redacted] refused")
}
