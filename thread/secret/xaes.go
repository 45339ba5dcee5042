package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
)

const (
	keyBytes   = 32
	nonceBytes = 24
	// gcmNonce is the nonce of AES-GCM: the second half of ours.
	gcmNonce = 12
	tagBytes = 16
)

// xaes is XAES-256-GCM as c2sp.org/XAES-256-GCM has it: AES-256-GCM under a key that is derived from the key and the first half of the
// nonce, which is long enough to be drawn at random.
type xaes struct {
	block cipher.Block
	k1    [aes.BlockSize]byte
}

func newXAES(key [keyBytes]byte) *xaes {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the key has the right size
	}
	x := &xaes{block: block}
	block.Encrypt(x.k1[:], x.k1[:])
	msb := 0
	for i := len(x.k1) - 1; i >= 0; i-- {
		msb, x.k1[i] = int(x.k1[i]>>7), x.k1[i]<<1|byte(msb)
	}
	x.k1[len(x.k1)-1] ^= byte(subtle.ConstantTimeSelect(msb, 0b10000111, 0))
	return x
}

// under is AES-256-GCM under the key that goes with a nonce.
func (x *xaes) under(nonce []byte) cipher.AEAD {
	derived := make([]byte, 0, keyBytes)
	for part := range byte(2) {
		block := append([]byte{0, part + 1, 'X', 0}, nonce[:gcmNonce]...)
		subtle.XORBytes(block, block, x.k1[:])
		x.block.Encrypt(block, block)
		derived = append(derived, block...)
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		panic(err) // the key has the right size
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has the right block size
	}
	return aead
}

// seal appends the ciphertext and its tag.
func (x *xaes) seal(to, nonce, plain, with []byte) []byte {
	return x.under(nonce).Seal(to, nonce[gcmNonce:], plain, with)
}

// open returns the plaintext; the error says that the tag is not right.
func (x *xaes) open(nonce, sealed, with []byte) ([]byte, error) {
	return x.under(nonce).Open(nil, nonce[gcmNonce:], sealed, with)
}
