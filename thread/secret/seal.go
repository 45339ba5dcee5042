package secret

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/restic/chunker"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"superstep.dev/internal/pieces"
)

const (
	// Encoding is the encoding of a sealed payload, in its metadata. The digit is the version of the form.
	Encoding = "binary/superstep-sealed-1"
	// MetadataKey is the name under which a sealed payload's metadata have the id of its key.
	MetadataKey = "encryption-key-id"
	// MaxBytes bounds a payload that is sealed.
	MaxBytes = 256 << 20
)

const (
	// The first byte of a sealed payload says which form follows.
	formWhole, formPieces = 1, 2
	// The first byte of what is in a part says how the rest is written.
	asItIs, compressed = 0, 1

	// wholeBytes is up to which size a payload is one part.
	wholeBytes = 64 << 10
	// mostPart bounds what a part comes to when it is opened: a table of all pieces of the largest payload, with room for metadata.
	mostPart = 4 << 20
	// worthIt is from how many bytes on a part is compressed.
	worthIt = 256
	// lengthBytes are before each part of a payload in pieces.
	lengthBytes = 4
)

// The roles of parts, which are authenticated: a piece is not taken for a table.
const (
	roleWhole = "whole"
	rolePiece = "piece"
	roleTable = "table"
)

// sealer seals and opens with one key.
type sealer struct {
	id            string
	whole, pieces *xaes
	nonces        []byte             // the key of the nonces of pieces
	cuts          func() chunker.Pol // where payloads are cut
}

func newSealer(k Key) *sealer {
	sub := func(use string) [keyBytes]byte {
		out, err := hkdf.Key(sha256.New, k.bytes[:], nil, "superstep sealed 1: "+use, keyBytes)
		if err != nil {
			panic(err) // the length is a constant
		}
		return [keyBytes]byte(out)
	}
	nonces, seed := sub("nonces of pieces"), sub("cuts")
	return &sealer{id: k.ID, whole: newXAES(sub("whole")), pieces: newXAES(sub("pieces")), nonces: nonces[:],
		cuts: sync.OnceValue(func() chunker.Pol {
			pol, err := chunker.DerivePolynomial(&stream{seed: seed})
			if err != nil {
				panic(err) // the stream has no end, and one polynomial in some fifty does
			}
			return pol
		})}
}

// stream are bytes that a seed decides.
type stream struct {
	seed [keyBytes]byte
	next uint64
	left []byte
}

// Read implements io.Reader.
func (s *stream) Read(into []byte) (int, error) {
	if len(s.left) == 0 {
		block := sha256.Sum256(binary.BigEndian.AppendUint64(s.seed[:], s.next))
		s.left = block[:]
		s.next++
	}
	n := copy(into, s.left)
	s.left = s.left[n:]
	return n, nil
}

// with is what is authenticated beside a part.
func (s *sealer) with(role string) []byte { return []byte(Encoding + "\x00" + s.id + "\x00" + role) }

// seal seals a payload.
func (s *sealer) seal(p *commonpb.Payload) (*commonpb.Payload, error) {
	if proto.Size(p) > MaxBytes {
		return nil, &Error{Kind: ErrTooLarge, Key: s.id}
	}
	data, err := s.sealed(p)
	return &commonpb.Payload{Data: data, Metadata: map[string][]byte{converter.MetadataEncoding: []byte(Encoding), MetadataKey: []byte(s.id)}}, err
}

func (s *sealer) sealed(p *commonpb.Payload) ([]byte, error) {
	if len(p.GetData()) > wholeBytes {
		return s.sealedPieces(p)
	}
	plain, err := proto.Marshal(p)
	if err != nil {
		return nil, err
	}
	plain = pack(plain)
	out := make([]byte, 1+nonceBytes, 1+nonceBytes+len(plain)+tagBytes)
	out[0] = formWhole
	nonce := out[1:]
	_, _ = rand.Read(nonce) // it never fails
	return s.whole.seal(out, nonce, plain, s.with(roleWhole)), nil
}

// sealedPieces seals each piece of a payload's data, and behind them a table: the payload without its data, with the pieces' nonces.
func (s *sealer) sealedPieces(p *commonpb.Payload) ([]byte, error) {
	cut, err := pieces.Cut(p.GetData(), s.cuts())
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, len(p.GetData())/2), formPieces)
	table := &commonpb.Payload{Metadata: p.GetMetadata(), ExternalPayloads: p.GetExternalPayloads(), Data: make([]byte, 0, len(cut)*nonceBytes)}
	for _, piece := range cut {
		var nonce []byte
		out, nonce = s.sealPart(out, pack(piece), rolePiece)
		table.Data = append(table.Data, nonce...)
	}
	last, err := proto.MarshalOptions{Deterministic: true}.Marshal(table)
	if err != nil {
		return nil, err
	}
	out, _ = s.sealPart(out, pack(last), roleTable)
	return out, nil
}

// sealPart appends a part whose nonce depends on all that is sealed in it: the same nonce never goes with something else.
func (s *sealer) sealPart(to, plain []byte, role string) (out, nonce []byte) {
	with := s.with(role)
	mac := hmac.New(sha256.New, s.nonces)
	_, _ = mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(with)))) // it never fails
	_, _ = mac.Write(with)
	_, _ = mac.Write(plain)
	nonce = mac.Sum(nil)[:nonceBytes]
	to = binary.BigEndian.AppendUint32(to, uint32(len(plain)+tagBytes))
	to = append(to, nonce...)
	return s.pieces.seal(to, nonce, plain, with), nonce
}

var errForm = errors.New("it does not have the form of a sealed payload")

// open opens what seal made. The error is errForm where the form is not right, and any other one where it is and a tag is not.
func (s *sealer) open(p *commonpb.Payload) (*commonpb.Payload, error) {
	data := p.GetData()
	if len(data) == 0 || len(data) > MaxBytes+MaxBytes/8 {
		return nil, errForm
	}
	form, data := data[0], data[1:]
	switch form {
	case formWhole:
		if len(data) < nonceBytes+tagBytes {
			return nil, errForm
		}
		return opened(s.whole.open(data[:nonceBytes], data[nonceBytes:], s.with(roleWhole)))
	case formPieces:
		return s.openPieces(data)
	}
	return nil, errForm
}

// openPieces opens the table first, which says which pieces there are, in which order.
func (s *sealer) openPieces(data []byte) (*commonpb.Payload, error) {
	var parts [][]byte
	for len(data) > 0 {
		if len(data) < lengthBytes+nonceBytes+tagBytes {
			return nil, errForm
		}
		size := binary.BigEndian.Uint32(data)
		data = data[lengthBytes:]
		if size < tagBytes || uint64(size)+nonceBytes > uint64(len(data)) {
			return nil, errForm
		}
		parts = append(parts, data[:nonceBytes+size])
		data = data[nonceBytes+size:]
	}
	if len(parts) == 0 {
		return nil, errForm
	}
	last := parts[len(parts)-1]
	p, err := opened(s.pieces.open(last[:nonceBytes], last[nonceBytes:], s.with(roleTable)))
	if err != nil {
		return nil, err
	}
	parts, table := parts[:len(parts)-1], p.GetData()
	if len(table) != len(parts)*nonceBytes {
		return nil, errForm
	}
	p.Data = nil
	for i, part := range parts {
		if !bytes.Equal(part[:nonceBytes], table[i*nonceBytes:(i+1)*nonceBytes]) {
			return nil, errForm
		}
		piece, err := s.pieces.open(part[:nonceBytes], part[nonceBytes:], s.with(rolePiece))
		if err == nil {
			piece, err = unpack(piece)
		}
		if err != nil {
			return nil, err
		}
		if len(p.Data)+len(piece) > MaxBytes {
			return nil, errForm
		}
		p.Data = append(p.Data, piece...)
	}
	return p, nil
}

// opened is the payload in a part that was opened.
func opened(plain []byte, err error) (*commonpb.Payload, error) {
	if err == nil {
		plain, err = unpack(plain)
	}
	if err != nil {
		return nil, err
	}
	p := &commonpb.Payload{}
	if proto.Unmarshal(plain, p) != nil {
		return nil, errForm
	}
	return p, nil
}

// zip and unzip are shared: both are safe for concurrent use.
var zip, unzip = sync.OnceValue(func() *zstd.Encoder {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(err) // its options are constants
	}
	return z
}), sync.OnceValue(func() *zstd.Decoder {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(mostPart))
	if err != nil {
		panic(err)
	}
	return z
})

// pack compresses what gets shorter by it.
func pack(plain []byte) []byte {
	if len(plain) >= worthIt && len(plain) <= mostPart {
		if short := zip().EncodeAll(plain, append(make([]byte, 0, len(plain)), compressed)); len(short) <= len(plain) {
			return short
		}
	}
	return append([]byte{asItIs}, plain...)
}

// unpack is for what was authenticated: it was packed by who has the key.
func unpack(packed []byte) ([]byte, error) {
	switch {
	case len(packed) > 0 && packed[0] == asItIs:
		return packed[1:], nil
	case len(packed) > 0 && packed[0] == compressed:
		if plain, err := unzip().DecodeAll(packed[1:], nil); err == nil {
			return plain, nil
		}
	}
	return nil, errForm
}
