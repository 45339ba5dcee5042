package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// TestPassingTroublesAreQuiet: what the server gets over by itself is written only when everything is.
func TestPassingTroublesAreQuiet(t *testing.T) {
	t.Parallel()
	for level, want := range map[zapcore.Level]int{zapcore.DebugLevel: 5, zapcore.WarnLevel: 1} {
		core, written := observer.New(level)
		logger := log.With(log.NewZapLogger(zap.New(passing{core})), tag.ShardID(1))
		logger.Error("Queue reader unable to retrieve tasks", tag.Error(errors.New("shard status unknown")))
		logger.Error("unable to add metrics baggage to gRPC trailer",
			tag.Error(errors.New("rpc error: code = Internal desc = transport: SendHeader called multiple times")))
		logger.Error("Operation failed with internal error.",
			tag.Error(errors.New("CreateTaskQueue operation failed. Failed to make task queue q of type Activity. Error: context canceled")))
		logger.Error("service failures", tag.Error(errors.New("Frontend is not healthy yet")))
		logger.Error("disk full", tag.Error(errors.New("no space left on device")))
		require.Len(t, written.All(), want)
	}
}
