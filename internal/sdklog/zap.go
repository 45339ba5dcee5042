package sdklog

import (
	"fmt"

	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
)

// zapLogger lets the Temporal SDK write into a zap logger.
type zapLogger struct{ to *zap.Logger }

var (
	_ log.Logger          = zapLogger{}
	_ log.WithLogger      = zapLogger{}
	_ log.WithSkipCallers = zapLogger{}
)

// New returns a logger of the Temporal SDK that writes into a zap logger.
func New(to *zap.Logger) log.Logger {
	return zapLogger{to.WithOptions(zap.AddCallerSkip(1))} // the caller is whoever called Debug, Info, …
}

// Debug implements log.Logger.
func (l zapLogger) Debug(msg string, keyvals ...any) { l.to.Debug(msg, zapFields(keyvals)...) }

// Info implements log.Logger.
func (l zapLogger) Info(msg string, keyvals ...any) { l.to.Info(msg, zapFields(keyvals)...) }

// Warn implements log.Logger.
func (l zapLogger) Warn(msg string, keyvals ...any) { l.to.Warn(msg, zapFields(keyvals)...) }

// Error implements log.Logger.
func (l zapLogger) Error(msg string, keyvals ...any) { l.to.Error(msg, zapFields(keyvals)...) }

// With implements log.WithLogger.
func (l zapLogger) With(keyvals ...any) log.Logger {
	return zapLogger{l.to.With(zapFields(keyvals)...)}
}

// WithCallerSkip implements log.WithSkipCallers.
func (l zapLogger) WithCallerSkip(depth int) log.Logger {
	return zapLogger{l.to.WithOptions(zap.AddCallerSkip(depth))}
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
