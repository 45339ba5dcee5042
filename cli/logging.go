package cli

import (
	"io"
	"log/slog"
	"slices"

	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"superstep.dev/cli/screen"
)

// newLogger returns a worker's logger. format and level are values of the flags.
func newLogger(w io.Writer, format, level string) *zap.Logger {
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.ISO8601TimeEncoder
	config.EncodeDuration = zapcore.StringDurationEncoder
	encoder := zapcore.NewConsoleEncoder(config)
	if format == "json" {
		encoder = zapcore.NewJSONEncoder(config)
	}
	lowest, _ := zapcore.ParseLevel(level) // info, if it were none
	return zap.New(discreetCore{zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), lowest)})
}

// discreetCore does not write values under a secret's name.
type discreetCore struct{ zapcore.Core }

// With implements zapcore.Core.
func (c discreetCore) With(fields []zapcore.Field) zapcore.Core {
	return discreetCore{c.Core.With(discreet(fields))}
}

// Check implements zapcore.Core.
func (c discreetCore) Check(entry zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return to.AddCore(entry, c)
	}
	return to
}

// Write implements zapcore.Core.
func (c discreetCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	return c.Core.Write(entry, discreet(fields))
}

// discreet replaces the values of secret fields.
func discreet(fields []zapcore.Field) []zapcore.Field {
	if !slices.ContainsFunc(fields, isSecretField) {
		return fields
	}
	fields = slices.Clone(fields)
	for i, field := range fields {
		if isSecretField(field) {
			fields[i] = zap.String(field.Key, screen.Redacted)
		}
	}
	return fields
}

func isSecretField(field zapcore.Field) bool { return screen.IsSecretName(field.Key) }

// silentLogger is the SDK's logger of commands for people: what went wrong comes back as an error.
func silentLogger() log.Logger { return log.NewStructuredLogger(slog.New(slog.DiscardHandler)) }
