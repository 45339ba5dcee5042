package graphadapter

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/gowebpki/jcs"
	"superstep.dev/approval"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// ParamsHash returns the SHA-256, in hex, of v in its canonical form: see [approval.Canonical].
func ParamsHash(v pregel.Value) (string, error) {
	canonical, err := approval.Canonical(v)
	if err != nil {
		return "", err
	}
	return ledger.Hash("params", string(canonical)), nil
}

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
