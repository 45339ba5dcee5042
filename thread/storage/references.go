package storage

import (
	"context"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/proxy"
	"google.golang.org/protobuf/proto"

	"superstep.dev/internal/delta"
)

// References tells of each object that the payloads of a message of the server's refer to, the pieces of large values and what a
// delta is told by included. The same object may come several times. Nothing is decoded but the references. s may be nil: then a reference
// is an [Error] of the kind ErrNone.
//
// Errors: those of reading a value, and of found.
func (s *Storage) References(ctx context.Context, m proto.Message, found func(name string) error) error {
	return proxy.VisitPayloads(ctx, m, proxy.VisitPayloadsOptions{
		SkipSearchAttributes: true,
		Visitor: func(_ *proxy.VisitPayloadsContext, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
			for _, p := range payloads {
				if err := s.referencesOf(ctx, p, found); err != nil {
					return nil, err
				}
			}
			return payloads, nil
		},
	})
}

func (s *Storage) referencesOf(ctx context.Context, p *commonpb.Payload, found func(name string) error) error {
	if !refers(p) {
		return nil
	}
	v, err := s.named(p)
	if err != nil {
		return err
	}
	return s.objects.referencesOf(ctx, v, anyNumber, found)
}

// referencesOf tells of the objects that a value is read from. It has the number that is given.
func (o *objects) referencesOf(ctx context.Context, v value, number int, found func(name string) error) error {
	if err := found(v.root()); err != nil || v.form == formWhole {
		return err
	}
	root, err := o.loadRoot(ctx, v, atOnce)
	if err != nil {
		return err
	}
	if v.form == formDelta {
		told, err := o.readTold(v, root.GetData(), number)
		if err != nil {
			return err
		}
		return behind(o.referencesOf(ctx, told.base, delta.Base(told.number), found), v.root())
	}
	pieces, err := o.piecesOf(v, root.GetData())
	for _, name := range pieces {
		if err := found(name); err != nil {
			return err
		}
	}
	return err
}
