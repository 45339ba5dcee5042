package graphadapter

import (
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
