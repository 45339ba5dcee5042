package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.uber.org/zap"

	"superstep.dev"
	"superstep.dev/internal/sdklog"
)

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
	logger := sdklog.New(zapped)
	log.With(logger, "api-key", "hunter2").Info("m", "Authorization", "hunter2", "taskToken", "hunter2", "tokens", 812)
	zapped.Error("rpc failed", zap.Error(errors.New("Bearer s3cr3t-key refused")))
	require.NotContains(t, out.String(), "hunter2")
	require.NotContains(t, out.String(), "s3cr3t-key")
	require.Contains(t, out.String(), `"tokens":812`)
	require.Contains(t, out.String(), "Bearer [redacted] refused")
}
