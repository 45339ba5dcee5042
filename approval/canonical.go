package approval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/gowebpki/jcs"
)

// Canonical returns v as canonical JSON (RFC 8785): the order of keys, white space and the spelling of numbers and
// strings make no difference.
//
// RFC 8785 knows only IEEE 754 doubles, where neighbouring large integers are the same. A number that a double cannot
// hold exactly is therefore written as an object of its digits: 9007199254740992 and 9007199254740993 are different amounts.
func Canonical(v json.RawMessage) ([]byte, error) {
	exact, err := spellOut(v)
	if err != nil {
		return nil, fmt.Errorf("the parameters have no canonical form: %w", err)
	}
	canonical, err := jcs.Transform(exact)
	if err != nil {
		return nil, fmt.Errorf("the parameters have no canonical form: %w", err)
	}
	return canonical, nil
}

// spellOut returns v with the numbers that a double would round written as objects of their digits.
func spellOut(v json.RawMessage) (json.RawMessage, error) {
	if !json.Valid(v) {
		return nil, errors.New("it is not one JSON value")
	}
	dec := json.NewDecoder(bytes.NewReader(v))
	dec.UseNumber()
	var decoded any
	if err := dec.Decode(&decoded); err != nil {
		return nil, err
	}
	changed := false
	decoded = spell(decoded, &changed)
	if !changed {
		return v, nil
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(decoded); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

func spell(v any, changed *bool) any {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sortedNames(v) {
			v[k] = spell(v[k], changed)
		}
	case []any:
		for i := range v {
			v[i] = spell(v[i], changed)
		}
	case json.Number:
		if rounds(v.String()) {
			*changed = true
			return map[string]any{"\x00number": v.String()}
		}
	}
	return v
}

// rounds reports whether the nearest double, printed as RFC 8785 does, is another number than the literal.
func rounds(literal string) bool {
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return true // beyond the range of doubles
	}
	if f == 0 {
		mantissa, _, _ := strings.Cut(strings.ToLower(literal), "e")
		return strings.ContainsAny(mantissa, "123456789")
	}
	exact, ok := new(big.Rat).SetString(literal)
	printed, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return !ok || exact.Cmp(printed) != 0
}

// sortedNames returns the names in an object, or objects, each once.
func sortedNames[V any](objects ...map[string]V) []string {
	var names []string
	for _, object := range objects {
		//workflowcheck:ignore The names are sorted before anyone sees them.
		for name := range object {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
