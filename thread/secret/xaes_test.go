package secret

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestXAES holds the cipher to the vectors of c2sp.org/XAES-256-GCM, one for each value of the bit that the derivation looks at.
func TestXAES(t *testing.T) {
	for _, v := range []struct {
		key       byte
		with, out string
	}{
		{0x01, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
		{0x03, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
	} {
		x := newXAES([keyBytes]byte(bytes.Repeat([]byte{v.key}, keyBytes)))
		nonce := []byte("ABCDEFGHIJKLMNOPQRSTUVWX")
		sealed := x.seal(nil, nonce, []byte("XAES-256-GCM"), []byte(v.with))
		require.Equal(t, v.out, hex.EncodeToString(sealed))
		plain, err := x.open(nonce, sealed, []byte(v.with))
		require.NoError(t, err)
		require.Equal(t, "XAES-256-GCM", string(plain))
		for i := range sealed {
			changed := bytes.Clone(sealed)
			changed[i] ^= 1
			_, err := x.open(nonce, changed, []byte(v.with))
			require.Error(t, err)
		}
		_, err = x.open(nonce, sealed, []byte("other"))
		require.Error(t, err)
	}
}
