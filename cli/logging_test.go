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

	"superstep.dev/cli/screen"
	"superstep.dev/internal/sdklog"
)

func TestLoggerFormats(t *testing.T) {
	var out bytes.Buffer
	logger := newLogger(&out, "json", "warn")
	logger.Info("too low")
	logger.Warn("kept", zap.Duration("wait", 2*time.Second))
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	require.Equal(t, "kept", line["msg"])
	require.Equal(t, "2s", line["wait"])

	out.Reset()
	logger = newLogger(&out, "console", "debug")
	logger.Debug("shown")
	require.Contains(t, out.String(), "shown")
}

// TestLogsHoldNoSecrets: neither under a telling name, nor within a text.
func TestLogsHoldNoSecrets(t *testing.T) {
	var out bytes.Buffer
	var secrets screen.Secrets
	secrets.Keep("s3cr3t-key")
	zapped := newLogger(secrets.Writer(&out), "json", "debug")
	logger := sdklog.New(zapped)
	log.With(logger, "api-key", "hunter2").Info("m", "Authorization", "hunter2", "taskToken", "hunter2", "tokens", 812)
	zapped.Error("rpc failed", zap.Error(errors.New("Bearer s3cr3t-key refused")))
	require.NotContains(t, out.String(), "hunter2")
	require.NotContains(t, out.String(), "s3cr3t-key")
	require.Contains(t, out.String(), `"tokens":812`)
	require.Contains(t, out.String(), "Bearer [redacted] refused")
}
