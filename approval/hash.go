package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
)

// HashParams returns "sha256:" and the hex SHA-256 of the canonical form of params. No parameters count as null.
func HashParams(params json.RawMessage) (string, error) {
	if len(params) == 0 {
		params = json.RawMessage("null")
	}
	canonical, err := Canonical(params)
	if err != nil {
		return "", err
	}
	return hash(canonical), nil
}

// Digest returns the hash of everything in the action that an approval is bound to: what would be done, with what, by
// which version, under which plan and key, for whom, needing what, and the watched state. How it is asked about (who,
// until when, what silence means) and what was asked before are not part of it. No permissions and no watched state are
// the same whether they are nil or empty.
func (a Action) Digest() string {
	bound := struct {
		Tool, ToolVersion, Summary, ParamsHash string
		PlanVersion                            int
		Key, Requester                         string
		Permissions                            []string
		Watch                                  map[string]string
	}{
		a.Tool, a.ToolVersion, a.Summary, a.ParamsHash, a.PlanVersion, a.Key, a.Requester,
		append([]string(nil), a.Permissions...), nil,
	}
	if len(a.Watch) > 0 {
		bound.Watch = a.Watch
	}
	text, _ := json.Marshal(bound) // strings, ints and a map with sorted keys always encode
	return hash(text)
}

func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func quote(s string) string {
	const most = 100
	if len(s) > most {
		s = s[:most]
	}
	return strconv.Quote(s)
}
