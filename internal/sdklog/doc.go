// Package sdklog makes loggers for Temporal's SDK: one that writes into zap, and one that leaves out what belongs to
// encoded payloads.
package sdklog
