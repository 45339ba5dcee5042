package cli

import (
	"fmt"

	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
)

// temporalLogger lets the Temporal SDK write into a zap logger.
type temporalLogger struct{ to *zap.Logger }

var (
	_ log.Logger          = temporalLogger{}
	_ log.WithLogger      = temporalLogger{}
	_ log.WithSkipCallers = temporalLogger{}
)

// newTemporalLogger returns the SDK's view of a logger.
func newTemporalLogger(to *zap.Logger) log.Logger {
	return temporalLogger{to.WithOptions(zap.AddCallerSkip(1))} // the caller is whoever called Debug, Info, …
}

// Debug implements log.Logger.
func (l temporalLogger) Debug(msg string, keyvals ...any) { l.to.Debug(msg, zapFields(keyvals)...) }

// Info implements log.Logger.
func (l temporalLogger) Info(msg string, keyvals ...any) { l.to.Info(msg, zapFields(keyvals)...) }

// Warn implements log.Logger.
func (l temporalLogger) Warn(msg string, keyvals ...any) { l.to.Warn(msg, zapFields(keyvals)...) }

// Error implements log.Logger.
func (l temporalLogger) Error(msg string, keyvals ...any) { l.to.Error(msg, zapFields(keyvals)...) }

// With implements log.WithLogger.
func (l temporalLogger) With(keyvals ...any) log.Logger {
	return temporalLogger{l.to.With(zapFields(keyvals)...)}
}

// WithCallerSkip implements log.WithSkipCallers.
func (l temporalLogger) WithCallerSkip(depth int) log.Logger {
	return temporalLogger{l.to.WithOptions(zap.AddCallerSkip(depth))}
}

// zapFields turns keys and values into fields. A value without a key is kept: a log line must not lose what it was
// written for.
func zapFields(keyvals []any) []zap.Field {
	fields := make([]zap.Field, 0, (len(keyvals)+1)/2)
	for i := 0; i < len(keyvals); i += 2 {
		if field, ok := keyvals[i].(zap.Field); ok { // a field takes one place, not two
			fields = append(fields, field)
			i--
			continue
		}
		if i+1 == len(keyvals) {
			fields = append(fields, zap.Any("no_key", keyvals[i]))
			break
		}
		key, ok := keyvals[i].(string)
		if !ok {
			key = fmt.Sprint(keyvals[i])
		}
		fields = append(fields, zap.Any(key, keyvals[i+1]))
	}
	return fields
}
