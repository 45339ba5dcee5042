package storage

import (
	"context"
	"fmt"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/proxy"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// convertWithin bounds what one value may take to be stored or read.
const convertWithin = 30 * time.Second

// Converter returns a data converter that fills in what its payloads refer to and stores what is large, for whoever calls the server
// without Temporal's SDK between. Never give it to a Temporal client or worker: within workflow code it would wait for the storage.
// s may be nil: then a reference is an [Error] of the kind ErrNone.
func (s *Storage) Converter(inner converter.DataConverter) converter.DataConverter {
	return &storing{inner, s, SpaceOf("", "")}
}

// storing is a data converter before a Storage.
type storing struct {
	converter.DataConverter
	storage *Storage
	space   string // where it stores
}

// referenceType is the type of a message that stands for a payload.
var referenceType = string((*sdkpb.ExternalStorageReference)(nil).ProtoReflect().Descriptor().FullName())

// refers reports whether a payload stands for another one.
func refers(p *commonpb.Payload) bool {
	return string(p.GetMetadata()[converter.MetadataEncoding]) == converter.MetadataEncodingProtoJSON &&
		string(p.GetMetadata()[converter.MetadataMessageType]) == referenceType
}

// ToPayload implements converter.DataConverter.
func (c *storing) ToPayload(v any) (*commonpb.Payload, error) {
	p, err := c.DataConverter.ToPayload(v)
	if err != nil || c.storage == nil {
		return p, err
	}
	return c.storage.refer(c.space, p)
}

// ToPayloads implements converter.DataConverter.
func (c *storing) ToPayloads(values ...any) (*commonpb.Payloads, error) {
	all, err := c.DataConverter.ToPayloads(values...)
	if err != nil || c.storage == nil {
		return all, err
	}
	for i, p := range all.GetPayloads() {
		if all.Payloads[i], err = c.storage.refer(c.space, p); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// FromPayload implements converter.DataConverter.
func (c *storing) FromPayload(p *commonpb.Payload, into any) error {
	p, err := c.storage.resolve(p)
	if err != nil {
		return err
	}
	return c.DataConverter.FromPayload(p, into)
}

// FromPayloads implements converter.DataConverter.
func (c *storing) FromPayloads(all *commonpb.Payloads, into ...any) error {
	var resolved *commonpb.Payloads
	for i, p := range all.GetPayloads() {
		if !refers(p) {
			continue
		}
		if resolved == nil {
			resolved = &commonpb.Payloads{Payloads: append([]*commonpb.Payload(nil), all.GetPayloads()...)}
		}
		var err error
		if resolved.Payloads[i], err = c.storage.resolve(p); err != nil {
			return err
		}
	}
	if resolved != nil {
		all = resolved
	}
	return c.DataConverter.FromPayloads(all, into...)
}

// WithWorkflowContext implements converter.ContextAware.
func (c *storing) WithWorkflowContext(ctx converter.WorkflowContext) converter.DataConverter {
	if aware, ok := c.DataConverter.(converter.ContextAware); ok {
		return &storing{aware.WithWorkflowContext(ctx), c.storage, c.space}
	}
	return c
}

// WithContext implements converter.ContextAware.
func (c *storing) WithContext(ctx context.Context) converter.DataConverter {
	if aware, ok := c.DataConverter.(converter.ContextAware); ok {
		return &storing{aware.WithContext(ctx), c.storage, c.space}
	}
	return c
}

// WithSerializationContext implements converter.DataConverterWithSerializationContext.
func (c *storing) WithSerializationContext(ctx converter.SerializationContext) converter.DataConverter {
	return &storing{converter.WithDataConverterSerializationContext(c.DataConverter, ctx), c.storage, c.space}
}

// For returns the converter with which values of a thread are encoded for the server. With one that is not of [Storage.Converter] it does
// nothing.
func For(c converter.DataConverter, namespace, workflowID string) converter.DataConverter {
	s, ok := c.(*storing)
	if !ok {
		return c
	}
	own := *s
	own.space = SpaceOf(namespace, workflowID)
	return &own
}

// Reading returns the converter for who reads messages that [Fill] has filled in, and stores nothing: a replay encodes what its run has
// encoded, and nobody keeps that. With one that is not of [Storage.Converter] it does nothing.
func Reading(c converter.DataConverter) converter.DataConverter {
	if s, ok := c.(*storing); ok {
		return s.DataConverter
	}
	return c
}

// Refers reports whether values of about that many bytes go by reference where the clients' payloads are those of a converter of a
// [Storage.Converter]. One that is near the threshold counts: a codec adds some.
func Refers(c converter.DataConverter, bytes int) bool {
	s, ok := c.(*storing)
	return ok && s.storage != nil && bytes >= s.storage.threshold/2
}

// Takes is how many bytes of a history a value of that many bytes takes at most, where the clients' payloads are those of a converter of a
// [Storage.Converter].
func Takes(c converter.DataConverter, bytes int) int {
	if s, ok := c.(*storing); ok && s.storage != nil {
		return min(bytes, max(s.storage.threshold, mostReference))
	}
	return bytes
}

// mostReference is what a reference takes, in bytes.
const mostReference = 600

// Fill fills in all that a message of the server's refers to, for a converter of a [Storage.Converter]; with any other one it does nothing.
func Fill(ctx context.Context, c converter.DataConverter, m proto.Message) error {
	s, ok := c.(*storing)
	if !ok {
		return nil
	}
	return proxy.VisitPayloads(ctx, m, proxy.VisitPayloadsOptions{
		SkipSearchAttributes: true, ConcurrencyLimit: together,
		Visitor: func(_ *proxy.VisitPayloadsContext, payloads []*commonpb.Payload) (_ []*commonpb.Payload, err error) {
			filled := slices.Clone(payloads)
			for i, p := range payloads {
				if filled[i], err = s.storage.resolve(p); err != nil {
					return nil, err
				}
			}
			return filled, nil
		},
	})
}

// refer stores a payload that is large, and returns what stands for it.
func (s *Storage) refer(space string, p *commonpb.Payload) (*commonpb.Payload, error) {
	if proto.Size(p) < s.threshold {
		return p, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), convertWithin)
	defer cancel()
	v, err := s.objects.store(ctx, space, p, atOnce)
	if err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(&sdkpb.ExternalStorageReference{DriverName: driverName, ClaimData: v.claim().ClaimData})
	return &commonpb.Payload{Data: text, Metadata: map[string][]byte{
		converter.MetadataEncoding: []byte(converter.MetadataEncodingProtoJSON), converter.MetadataMessageType: []byte(referenceType),
	}, ExternalPayloads: []*commonpb.Payload_ExternalPayloadDetails{{SizeBytes: int64(proto.Size(p))}}}, err
}

// resolve returns what a payload stands for.
func (s *Storage) resolve(p *commonpb.Payload) (*commonpb.Payload, error) {
	if !refers(p) {
		return p, nil
	}
	v, err := s.named(p)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), convertWithin)
	defer cancel()
	return s.objects.load(ctx, v, atOnce)
}

// named reads the reference that a payload is.
func (s *Storage) named(p *commonpb.Payload) (value, error) {
	if s == nil {
		return value{}, &Error{Kind: ErrNone}
	}
	var ref sdkpb.ExternalStorageReference
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(p.GetData(), &ref); err != nil {
		return value{}, fmt.Errorf("a reference to a stored value cannot be read: %w", err)
	}
	if ref.GetDriverName() != driverName {
		return value{}, &Error{Kind: ErrNone, Cause: fmt.Errorf("the value lies in a storage with the name %q", ref.GetDriverName())}
	}
	return valueOf(ref.GetClaimData())
}

// atOnce waits for no turn.
func atOnce(_ context.Context, do func() error) error { return do() }
