package graphadapter

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/gowebpki/jcs"

	"superstep.dev/graphadapter/pregel"
)

// Fingerprint names a Spec by its content: the SHA-256 of its canonical JSON (RFC 8785), in hex. Equal fingerprints
// mean equal graphs as far as data goes; functions are not part of it.
func Fingerprint(spec *pregel.Spec) (string, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("the spec of graph %q is not JSON: %w", spec.Name, err)
	}
	canonical, err := jcs.Transform(raw)
	if err != nil {
		return "", fmt.Errorf("the spec of graph %q has no canonical form: %w", spec.Name, err)
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}
