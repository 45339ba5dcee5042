package sdklog

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
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

// NotShown stands for a text that is left out of a log line.
const NotShown = "[not shown: payloads are encoded]"

// Discreet returns a logger without the texts of errors: where payloads are encoded, an error's text is as secret as the
// state that it quotes. Of an error it names the type; what the server and the connection say is shown.
func Discreet(to log.Logger) log.Logger {
	if _, already := to.(discreet); already {
		return to
	}
	return discreet{log.Skip(to, 1)} // the caller is whoever called Debug, Info, …
}

type discreet struct{ to log.Logger }

var (
	_ log.Logger          = discreet{}
	_ log.WithLogger      = discreet{}
	_ log.WithSkipCallers = discreet{}
)

// Debug implements log.Logger.
func (d discreet) Debug(msg string, keyvals ...any) { d.to.Debug(msg, shown(keyvals)...) }

// Info implements log.Logger.
func (d discreet) Info(msg string, keyvals ...any) { d.to.Info(msg, shown(keyvals)...) }

// Warn implements log.Logger.
func (d discreet) Warn(msg string, keyvals ...any) { d.to.Warn(msg, shown(keyvals)...) }

// Error implements log.Logger.
func (d discreet) Error(msg string, keyvals ...any) { d.to.Error(msg, shown(keyvals)...) }

// With implements log.WithLogger.
func (d discreet) With(keyvals ...any) log.Logger { return discreet{log.With(d.to, shown(keyvals)...)} }

// WithCallerSkip implements log.WithSkipCallers.
func (d discreet) WithCallerSkip(depth int) log.Logger { return discreet{log.Skip(d.to, depth)} }

// secretKeys are the names under which log lines have texts of errors, in lower case.
var secretKeys = []string{"error", "panicerror", "reason", "cause", "result"}

// shown are keys and values without what is not to be read.
func shown(keyvals []any) []any {
	out := slices.Clone(keyvals)
	for i, value := range out {
		if err, ok := value.(error); ok {
			out[i] = shownError(err)
			continue
		}
		if i%2 == 0 || value == nil {
			continue
		}
		if key, ok := out[i-1].(string); ok && slices.Contains(secretKeys, strings.ToLower(key)) {
			out[i] = NotShown
		}
	}
	return out
}

// shownError is what may be read of an error. What wraps the error of a call may quote a state, so it is left out.
func shownError(err error) string {
	var application *temporal.ApplicationError
	var service serviceerror.ServiceError
	switch {
	case errors.As(err, &application):
		return fmt.Sprintf("%s %s", application.Type(), NotShown)
	case errors.As(err, &service):
		return service.Error()
	case errors.Is(err, context.Canceled):
		return context.Canceled.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded.Error()
	}
	return fmt.Sprintf("%s %s", reflect.TypeOf(err), NotShown)
}
