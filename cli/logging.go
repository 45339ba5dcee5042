package cli

import (
	"io"
	"log/slog"
	"slices"

	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger returns a worker's logger.
func newLogger(w io.Writer, format, level string) (*zap.Logger, error) {
	lowest, err := zapcore.ParseLevel(level)
	if err != nil || lowest > zapcore.ErrorLevel {
		return nil, usagef("--log-level %s is unknown; it is debug, info, warn or error", quoted(level))
	}
	config := zap.NewProductionEncoderConfig()
	config.EncodeTime = zapcore.ISO8601TimeEncoder
	config.EncodeDuration = zapcore.StringDurationEncoder
	var encoder zapcore.Encoder
	switch format {
	case "console":
		encoder = zapcore.NewConsoleEncoder(config)
	case "json":
		encoder = zapcore.NewJSONEncoder(config)
	default:
		return nil, usagef("--log-format %s is unknown; it is console or json", quoted(format))
	}
	core := zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), lowest)
	return zap.New(discreetCore{core}), nil
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
			fields[i] = zap.String(field.Key, redacted)
		}
	}
	return fields
}

func isSecretField(field zapcore.Field) bool { return isSecretName(field.Key) }

// silentLogger is the SDK's logger of commands for people: what went wrong comes back as an error.
func silentLogger() log.Logger { return log.NewStructuredLogger(slog.New(slog.DiscardHandler)) }
