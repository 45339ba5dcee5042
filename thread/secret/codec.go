package secret

import (
	"context"
	"errors"
	"slices"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"
)

// codec is the codec of Keys, which may be nil.
type codec struct{ keys *Keys }

// Codec returns the keys as a codec of payloads, for converter.NewCodecDataConverter and for an HTTP endpoint. Payloads
// that are not encrypted are decoded as they are: those of runs from before there were keys. k may be nil, which encodes nothing.
//
// Errors of Decode: an [*Error] of the kinds ErrNoKeys, ErrUnknownKey, ErrWrongKey and ErrDamaged. Those of Encode: ErrTooLarge.
func (k *Keys) Codec() converter.PayloadCodec { return codec{k} }

// Encode implements converter.PayloadCodec.
func (c codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	if c.keys == nil {
		return payloads, nil
	}
	o := c.keys.get(false)
	writes, _ := o.ring.Writes(c.keys.now())
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		var err error
		if out[i], err = o.with[writes.ID].seal(p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Decode implements converter.PayloadCodec.
func (c codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	var out []*commonpb.Payload
	for i, p := range payloads {
		if string(p.GetMetadata()[converter.MetadataEncoding]) != Encoding {
			continue
		}
		if out == nil {
			out = slices.Clone(payloads)
		}
		var err error
		if out[i], err = c.keys.open(p); err != nil {
			return nil, err
		}
	}
	if out == nil {
		return payloads, nil
	}
	return out, nil
}

func (k *Keys) open(p *commonpb.Payload) (*commonpb.Payload, error) {
	id := string(p.GetMetadata()[MetadataKey])
	if !ids.MatchString(id) {
		return nil, &Error{Kind: ErrDamaged, Problem: "it names no key"}
	}
	if k == nil {
		return nil, &Error{Kind: ErrNoKeys, Key: id}
	}
	o := k.get(false)
	s := o.with[id]
	if s == nil { // it may have been added within the second
		o = k.get(true)
		s = o.with[id]
	}
	if s == nil {
		return nil, k.misses(&Error{Kind: ErrUnknownKey, Key: id, Where: k.where, Has: o.ring.ids()})
	}
	plain, err := s.open(p)
	switch {
	case errors.Is(err, errForm):
		return nil, &Error{Kind: ErrDamaged, Key: id, Where: k.where, Problem: "it was encrypted with the key " + id}
	case err != nil:
		return nil, k.misses(&Error{Kind: ErrWrongKey, Key: id, Where: k.where})
	}
	return plain, nil
}

// Converter returns a data converter that encrypts what inner makes; a nil inner is Temporal's default. k may be nil: then
// nothing is encrypted, and what is encrypted is an [*Error] of the kind ErrNoKeys.
//
// Within workflow code a payload that cannot be read for want of its key stops the workflow task with a panic, as Temporal's SDK wants
// that: the server repeats the task until a worker has the key. An error would end the run.
func (k *Keys) Converter(inner converter.DataConverter) converter.DataConverter {
	if inner == nil {
		inner = converter.GetDefaultDataConverter()
	}
	return &sealing{converter.NewCodecDataConverter(inner, codec{k}), inner, k, false}
}

// Hides reports whether a data converter encrypts, or does something else that nobody knows here.
func Hides(c converter.DataConverter) bool {
	s, ours := c.(*sealing)
	return c != nil && (!ours || s.keys != nil)
}

// sealing is the data converter of Keys.
type sealing struct {
	converter.DataConverter
	inner converter.DataConverter
	keys  *Keys
	// replayed says that workflow code uses it.
	replayed bool
}

// FromPayload implements converter.DataConverter.
func (c *sealing) FromPayload(p *commonpb.Payload, into any) error {
	return c.stop(c.DataConverter.FromPayload(p, into))
}

// FromPayloads implements converter.DataConverter.
func (c *sealing) FromPayloads(all *commonpb.Payloads, into ...any) error {
	return c.stop(c.DataConverter.FromPayloads(all, into...))
}

// stop stops a workflow task that cannot read what it needs.
func (c *sealing) stop(err error) error {
	var told *Error
	if c.replayed && errors.As(err, &told) {
		panic(told)
	}
	return err
}

// over is the same converter over another inner one.
func (c *sealing) over(inner converter.DataConverter, replayed bool) converter.DataConverter {
	return &sealing{converter.NewCodecDataConverter(inner, codec{c.keys}), inner, c.keys, c.replayed || replayed}
}

// WithWorkflowContext implements converter.ContextAware.
func (c *sealing) WithWorkflowContext(ctx converter.WorkflowContext) converter.DataConverter {
	inner := c.inner
	if aware, ok := inner.(converter.ContextAware); ok {
		inner = aware.WithWorkflowContext(ctx)
	}
	return c.over(inner, ctx == nil || ctx.Value(asked{}) == nil)
}

// asked is the key of contexts of queries.
type asked struct{}

// Asked returns a context to set query handlers with: a query that cannot be read for want of its key is refused, and does not
// stop the workflow task.
func Asked(ctx workflow.Context) workflow.Context { return workflow.WithValue(ctx, asked{}, true) }

// WithContext implements converter.ContextAware.
func (c *sealing) WithContext(ctx context.Context) converter.DataConverter {
	if aware, ok := c.inner.(converter.ContextAware); ok {
		return c.over(aware.WithContext(ctx), false)
	}
	return c
}

// WithSerializationContext implements converter.DataConverterWithSerializationContext.
func (c *sealing) WithSerializationContext(ctx converter.SerializationContext) converter.DataConverter {
	return c.over(converter.WithDataConverterSerializationContext(c.inner, ctx), false)
}

// Concerns reports whether an error, or the text of one that came over the wire, is about a payload that is encrypted: what helps
// is another key.
func Concerns(err error) bool {
	var told *Error
	return err != nil && (errors.As(err, &told) || strings.Contains(err.Error(), Encoding))
}
