package storage

import (
	"context"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// inline is the key of contexts whose messages go as they are.
type inline struct{}

// Inline marks a call whose values stay in its message, however large they are: heartbeats, of which the server keeps the last
// one only, and no longer than their activity runs. In a storage each would be kept.
func Inline(ctx context.Context) context.Context { return context.WithValue(ctx, inline{}, true) }

// Passing are values that may stay in their message, as with [Inline]: replies to queries, which nobody keeps, and results that somebody
// without a storage reads. Passing reports whether this one does.
type Passing interface{ Passing() bool }

// passes marks the payload of a Passing value. A codec encodes what is inside, so the mark stays readable for the storage.
const passes = "superstep/passing"

// Sparing returns the data converter of a Temporal client with a [Storage]: it marks what is not to be stored. inner may be nil, for
// Temporal's default.
func Sparing(inner converter.DataConverter) converter.DataConverter {
	switch c := inner.(type) {
	case nil:
		return &sparing{converter.GetDefaultDataConverter()}
	case *sparing:
		return c
	}
	return &sparing{inner}
}

// sparing is a data converter that marks payloads of Passing values.
type sparing struct{ converter.DataConverter }

func (c *sparing) mark(p *commonpb.Payload, v any) {
	if passing, ok := v.(Passing); !ok || p == nil || !passing.Passing() {
		return
	}
	if p.Metadata == nil {
		p.Metadata = map[string][]byte{}
	}
	p.Metadata[passes] = []byte{'1'}
}

// ToPayload implements converter.DataConverter.
func (c *sparing) ToPayload(v any) (*commonpb.Payload, error) {
	p, err := c.DataConverter.ToPayload(v)
	c.mark(p, v)
	return p, err
}

// ToPayloads implements converter.DataConverter.
func (c *sparing) ToPayloads(values ...any) (*commonpb.Payloads, error) {
	all, err := c.DataConverter.ToPayloads(values...)
	for i, p := range all.GetPayloads() {
		if i < len(values) {
			c.mark(p, values[i])
		}
	}
	return all, err
}

// WithWorkflowContext implements converter.ContextAware.
func (c *sparing) WithWorkflowContext(ctx converter.WorkflowContext) converter.DataConverter {
	if aware, ok := c.DataConverter.(converter.ContextAware); ok {
		return &sparing{aware.WithWorkflowContext(ctx)}
	}
	return c
}

// WithContext implements converter.ContextAware.
func (c *sparing) WithContext(ctx context.Context) converter.DataConverter {
	if aware, ok := c.DataConverter.(converter.ContextAware); ok {
		return &sparing{aware.WithContext(ctx)}
	}
	return c
}

// WithSerializationContext implements converter.DataConverterWithSerializationContext.
func (c *sparing) WithSerializationContext(ctx converter.SerializationContext) converter.DataConverter {
	return &sparing{converter.WithDataConverterSerializationContext(c.DataConverter, ctx)}
}
