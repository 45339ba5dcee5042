package main

import (
	"os"
	"time"

	"go.temporal.io/server/common/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger writes to stderr, one readable line an entry. The returned level
// changes what is written while it runs.
func newLogger(level zapcore.Level) (*zap.Logger, zap.AtomicLevel) {
	atomic := zap.NewAtomicLevelAt(level)
	encoder := zap.NewDevelopmentEncoderConfig()
	encoder.EncodeTime = zapcore.TimeEncoderOfLayout(time.TimeOnly)
	encoder.CallerKey = zapcore.OmitKey
	encoder.StacktraceKey = zapcore.OmitKey
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(encoder), zapcore.Lock(os.Stderr), atomic)
	return zap.New(core), atomic
}

func serverLogger(l *zap.Logger) log.Logger { return log.NewZapLogger(l) }
