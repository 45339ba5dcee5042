package storage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/proxy"
	"google.golang.org/protobuf/proto"
)

// References tells of each object that the payloads of a message of the server's refer to, the pieces of large values included. The same
// object may come several times. Nothing is decoded but the references. s may be nil: then a reference is an [Error] of the kind ErrNone.
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
	if err := found(v.root()); err != nil || !v.cut {
		return err
	}
	root, err := s.objects.get(ctx, v.root())
	if err != nil {
		return err
	}
	table := &commonpb.Payload{}
	if err := proto.Unmarshal(root, table); err != nil {
		return &Error{Kind: ErrDamaged, Object: v.root(), Where: s.Where(), Cause: err}
	}
	pieces := table.GetData()
	if len(pieces)%entryBytes != 0 {
		return &Error{Kind: ErrDamaged, Object: v.root(), Where: s.Where(), Cause: fmt.Errorf("its table of pieces has %d bytes", len(pieces))}
	}
	for ; len(pieces) > 0; pieces = pieces[entryBytes:] {
		if err := found(v.space + "/" + hex.EncodeToString(pieces[:sha256.Size])); err != nil {
			return err
		}
	}
	return nil
}
