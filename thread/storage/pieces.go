package storage

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"superstep.dev/internal/pieces"
)

const (
	// wholeBytes is up to which size a value is one object.
	wholeBytes = 64 << 10
	// entryBytes is a line of a value's table of pieces: digest and size.
	entryBytes = sha256.Size + 4
	// together is how many pieces of one value are stored or read at once.
	together = 8
)

// once does a part of the work, when it is its turn.
type once func(ctx context.Context, do func() error) error

// storeWhole stores a payload by itself, in pieces when it is large.
func (o *objects) storeWhole(ctx context.Context, space string, p *commonpb.Payload, inTurn once) (*version, error) {
	v := &version{value: value{space: space, bytes: len(p.GetData()), form: formWhole}, payload: p, since: time.Now()}
	root := p
	if v.bytes > wholeBytes {
		table, err := o.storePieces(ctx, space, p.GetData(), inTurn)
		if err != nil {
			return nil, err
		}
		v.form, v.table = formPieces, table
		root = &commonpb.Payload{Metadata: p.GetMetadata(), Data: table, ExternalPayloads: p.GetExternalPayloads()}
	}
	return v, o.storeRoot(ctx, v, root, inTurn)
}

// storeRoot stores the object that a reference to a value names.
func (o *objects) storeRoot(ctx context.Context, v *version, root *commonpb.Payload, inTurn once) error {
	object, err := proto.MarshalOptions{Deterministic: true}.Marshal(root)
	if err != nil {
		return err
	}
	return inTurn(ctx, func() error {
		sha, err := o.put(ctx, v.space, object)
		v.object = hex.EncodeToString(sha[:])
		return err
	})
}

// storePieces cuts data and returns the table of its pieces.
func (o *objects) storePieces(ctx context.Context, space string, data []byte, inTurn once) ([]byte, error) {
	parts, err := pieces.Cut(data, pieces.Polynomial)
	if err != nil {
		return nil, err
	}
	table := make([]byte, len(parts)*entryBytes)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(together)
	for i, piece := range parts {
		entry := table[i*entryBytes : (i+1)*entryBytes]
		binary.BigEndian.PutUint32(entry[sha256.Size:], uint32(len(piece)))
		group.Go(func() error {
			return inTurn(groupCtx, func() error {
				sha, err := o.put(groupCtx, space, piece)
				copy(entry, sha[:])
				return err
			})
		})
	}
	return table, group.Wait()
}

// loadRoot reads the object that a reference to a value names.
func (o *objects) loadRoot(ctx context.Context, v value, inTurn once) (*commonpb.Payload, error) {
	var object []byte
	err := inTurn(ctx, func() (err error) {
		object, err = o.get(ctx, v.root())
		return err
	})
	if err != nil {
		return nil, err
	}
	root := &commonpb.Payload{}
	if err := proto.Unmarshal(object, root); err != nil {
		return nil, o.damaged(v, err)
	}
	return root, nil
}

// damaged is the error of a value that does not fit what is said of it.
func (o *objects) damaged(v value, why error) error {
	return &Error{Kind: ErrDamaged, Object: v.root(), Where: o.Where(), Cause: why}
}

// piecesOf are the names of the objects in a table of pieces.
func (o *objects) piecesOf(v value, table []byte) ([]string, error) {
	if len(table)%entryBytes != 0 {
		return nil, o.damaged(v, fmt.Errorf("its table of pieces has %d bytes", len(table)))
	}
	names := make([]string, 0, len(table)/entryBytes)
	for ; len(table) > 0; table = table[entryBytes:] {
		names = append(names, v.space+"/"+hex.EncodeToString(table[:sha256.Size]))
	}
	return names, nil
}

// loadPieces puts data together from the table of its pieces.
func (o *objects) loadPieces(ctx context.Context, v value, table []byte, inTurn once) ([]byte, error) {
	damaged := func(why string) error { return o.damaged(v, errors.New(why)) }
	if len(table)%entryBytes != 0 || len(table)/entryBytes*pieces.Most < v.bytes {
		return nil, damaged("its table of pieces is cut off")
	}
	data := make([]byte, v.bytes)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(together)
	at := 0
	for ; len(table) > 0; table = table[entryBytes:] {
		name, size := v.space+"/"+hex.EncodeToString(table[:sha256.Size]), int(binary.BigEndian.Uint32(table[sha256.Size:entryBytes]))
		if size > len(data)-at {
			_ = group.Wait()
			return nil, damaged("its pieces are more than it has")
		}
		place := data[at : at+size]
		at += size
		group.Go(func() error {
			return inTurn(groupCtx, func() error {
				piece, err := o.get(groupCtx, name)
				if err == nil && len(piece) != len(place) {
					err = damaged("a piece has another size than its table says")
				}
				copy(place, piece)
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if at != len(data) {
		return nil, damaged("its pieces are less than it has")
	}
	return data, nil
}
