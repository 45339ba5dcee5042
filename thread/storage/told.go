package storage

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"golang.org/x/sync/errgroup"

	"superstep.dev/internal/delta"
)

// told is what the object of a value holds that is told by an earlier one.
type told struct {
	number int   // of this version, see package delta
	base   value // of the same space
	delta  []byte
}

// bytes are the data of the object: number and form of the base, its digest, its size, the delta.
func (t told) bytes() ([]byte, error) {
	digest, err := hex.DecodeString(t.base.object)
	if err != nil {
		return nil, err
	}
	data := append([]byte{byte(t.number), byte(slices.Index(forms, t.base.form))}, digest...)
	data = binary.AppendUvarint(data, uint64(t.base.bytes))
	return append(data, t.delta...), nil
}

// anyNumber is the number of a value of which nobody has said which version it is.
const anyNumber = -1

// readTold reads the object of a value that is told by an earlier one. It has the number that is given, which is that of the base of
// the version that it is read for: so no version is read by more than package delta allows, whoever wrote it.
func (o *objects) readTold(v value, data []byte, number int) (t told, err error) {
	const fixed = 2 + 32
	if len(data) < fixed {
		return t, o.damaged(v, errors.New("its delta is cut off"))
	}
	size, n := binary.Uvarint(data[fixed:])
	if n <= 0 || size > MaxValueBytes || int(data[1]) >= len(forms) {
		return t, o.damaged(v, errors.New("what its delta goes on from cannot be read"))
	}
	t = told{number: int(data[0]), delta: data[fixed+n:],
		base: value{space: v.space, object: hex.EncodeToString(data[2:fixed]), bytes: int(size), form: forms[data[1]]}}
	known := t.number >= 1 && t.number <= delta.Last
	if !known || number != anyNumber && number != t.number || (t.base.form == formDelta) != (delta.Base(t.number) > 0) {
		return t, o.damaged(v, fmt.Errorf("its delta has the number %d", t.number))
	}
	return t, nil
}

// store stores a payload: by what is new in it where the storage has an earlier version of the same value, else whole.
func (o *objects) store(ctx context.Context, space string, p *commonpb.Payload, inTurn once) (value, error) {
	if n := len(p.GetData()); n > MaxValueBytes {
		return value{}, &Error{Kind: ErrTooLarge, Where: o.Where(), Cause: fmt.Errorf("it has %d", n)}
	}
	v, err := o.storeNews(ctx, space, p, inTurn)
	if err == nil && v == nil {
		v, err = o.storeWhole(ctx, space, p, inTurn)
	}
	if err != nil {
		return value{}, err
	}
	if v.payload == p && o.versions.takes(v) {
		v.payload = v.copied() // the caller's is the caller's
	}
	o.versions.keep(v)
	return v.value, nil
}

// storeNews stores what is new in a value; nil when it is to be stored whole. A delta is stored when all that it is told by is there, and
// will be for as long as what is stored now: see [Objects].
func (o *objects) storeNews(ctx context.Context, space string, p *commonpb.Payload, inTurn once) (*version, error) {
	for _, before := range o.versions.of(space) {
		number, ok := delta.Next(before.number)
		same := before.same(p)
		if !same && !ok {
			return nil, nil
		}
		base := before
		for !same && base.number > delta.Base(number) {
			base = base.base
		}
		var made []byte
		if !same {
			if made, ok = base.news(p.GetData()); !ok {
				continue
			}
		}
		if there, err := o.hasAll(ctx, base, inTurn); err != nil || !there {
			o.versions.forget(space)
			return nil, err
		}
		if same {
			return before, nil
		}
		return o.storeTold(ctx, told{number, base.value, made}, base, p, inTurn)
	}
	return nil, nil
}

// storeTold stores a delta.
func (o *objects) storeTold(ctx context.Context, t told, base *version, p *commonpb.Payload, inTurn once) (*version, error) {
	v := &version{value: value{space: base.space, bytes: len(p.GetData()), form: formDelta}, payload: p, number: t.number, base: base,
		read: base.read + len(t.delta), since: time.Now()}
	data, err := t.bytes()
	if err != nil {
		return nil, err
	}
	return v, o.storeRoot(ctx, v, &commonpb.Payload{Metadata: p.GetMetadata(), Data: data, ExternalPayloads: p.GetExternalPayloads()}, inTurn)
}

// load returns a payload.
func (o *objects) load(ctx context.Context, v value, inTurn once) (*commonpb.Payload, error) {
	found, err := o.version(ctx, v, anyNumber, inTurn)
	if err != nil {
		return nil, err
	}
	if !o.versions.takes(found) {
		return found.payload, nil
	}
	o.versions.keep(found)
	return found.copied(), nil
}

// version returns a value, and what it is told by. It has the number that is given.
func (o *objects) version(ctx context.Context, v value, number int, inTurn once) (*version, error) {
	if known := o.versions.find(v); known != nil && (number == anyNumber || number == known.number) {
		return known, nil
	}
	root, err := o.loadRoot(ctx, v, inTurn)
	if err != nil {
		return nil, err
	}
	out := &version{value: v, payload: root, since: time.Now()}
	switch v.form {
	case formPieces:
		out.table = root.Data
		root.Data, err = o.loadPieces(ctx, v, out.table, inTurn)
	case formDelta:
		err = o.fold(ctx, out, number, inTurn)
	}
	if err == nil && len(root.GetData()) != v.bytes {
		err = o.damaged(v, fmt.Errorf("it has %d bytes, not %d", len(root.GetData()), v.bytes))
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// fold makes the value of a delta and what that is told by.
func (o *objects) fold(ctx context.Context, v *version, number int, inTurn once) error {
	t, err := o.readTold(v.value, v.payload.GetData(), number)
	if err != nil {
		return err
	}
	if v.base, err = o.version(ctx, t.base, delta.Base(t.number), inTurn); err != nil {
		return behind(err, v.root())
	}
	v.number, v.read = t.number, v.base.read+len(t.delta)
	if v.payload.Data, err = delta.Apply(v.base.payload.GetData(), t.delta, v.bytes); err != nil {
		return o.damaged(v.value, err)
	}
	return nil
}

// hasAll reports whether all objects that a version is read from are there.
func (o *objects) hasAll(ctx context.Context, v *version, inTurn once) (bool, error) {
	var needed []string
	for _, one := range v.chain() {
		pieces, err := o.piecesOf(one.value, one.table)
		if err != nil {
			return false, err
		}
		needed = append(append(needed, one.root()), pieces...)
	}
	there := make([]bool, len(needed))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(together)
	for i, name := range needed {
		group.Go(func() error {
			return inTurn(groupCtx, func() (err error) {
				there[i], err = retry(groupCtx, o, tryFor, func(ctx context.Context) (bool, error) { return o.Has(ctx, name) })
				return err
			})
		})
	}
	err := group.Wait()
	return err == nil && !slices.Contains(there, false), err
}
