package main

import (
	"os"
	"slices"
	"strings"
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
	return zap.New(passing{core}), atomic
}

// passingTroubles are errors that the server reports loudly and gets over by
// itself: a database that was slow for a moment, a call that ends while the server
// stops. Nobody can do anything about them.
var passingTroubles = []string{
	"shard status unknown",
	"transport: SendHeader called multiple times",
	"context canceled", // whoever asked has left
}

// passing leaves out what says that of itself, unless everything is written.
type passing struct{ zapcore.Core }

func (p passing) With(fields []zapcore.Field) zapcore.Core { return passing{p.Core.With(fields)} }

func (p passing) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if p.Enabled(e.Level) {
		return checked.AddCore(e, p)
	}
	return checked
}

func (p passing) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if !p.Enabled(zapcore.DebugLevel) && slices.ContainsFunc(fields, passes) {
		return nil
	}
	return p.Core.Write(e, fields)
}

// passes reports whether a field is the error of a passing trouble.
func passes(f zapcore.Field) bool {
	err, ok := f.Interface.(error)
	return ok && slices.ContainsFunc(passingTroubles, func(trouble string) bool { return strings.Contains(err.Error(), trouble) })
}

func serverLogger(l *zap.Logger) log.Logger { return log.NewZapLogger(l) }
