package approval

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"

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
	decoded, err := decode(v)
	if err != nil {
		return nil, err
	}
	changed := false
	if decoded = spell(decoded, &changed); !changed {
		return v, nil
	}
	return encode(decoded), nil
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

const maxDepth = 100 // of objects and lists within each other

// paramsProblem says why parameters cannot be asked about, "" when they can.
func paramsProblem(params json.RawMessage) string {
	if len(params) > MaxParams {
		return fmt.Sprintf("they have at most %d bytes, these have %d: keep large values outside and pass a reference",
			MaxParams, len(params))
	}
	if len(params) == 0 {
		return ""
	}
	if !json.Valid(params) {
		return "they are not one JSON value"
	}
	dec := json.NewDecoder(bytes.NewReader(params))
	dec.UseNumber()
	if err := checkNames(dec, maxDepth); err != nil {
		return err.Error()
	}
	if _, err := HashParams(params); err != nil {
		return err.Error()
	}
	return ""
}

// checkNames reads one value. Names within an object must differ by more than case: Go reads {"amount": 1, "Amount":
// 1000} into one field, so a policy would look at another amount than the tool.
func checkNames(dec *json.Decoder, depth int) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	begin, nested := token.(json.Delim)
	if !nested {
		return nil
	}
	if depth == 0 {
		return fmt.Errorf("they have at most %d objects and lists within each other", maxDepth)
	}
	seen := map[string]string{}
	for dec.More() {
		if begin == '{' {
			if err := checkName(dec, seen); err != nil {
				return err
			}
		}
		if err := checkNames(dec, depth-1); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

func checkName(dec *json.Decoder, seen map[string]string) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	name, _ := token.(string)
	if strings.HasPrefix(name, "\x00") {
		return errors.New("a name begins with a zero byte, which is how canonical JSON marks large numbers")
	}
	same := strings.Map(fold, name)
	if other, twice := seen[same]; twice {
		return fmt.Errorf("the names %s and %s in one object mean the same to a tool that reads them", quote(other), quote(name))
	}
	seen[same] = name
	return nil
}

// fold returns the least of the characters that differ from r by case only, as encoding/json compares names.
func fold(r rune) rune {
	least := r
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		least = min(least, other)
	}
	return least
}

func decode(value json.RawMessage) (any, error) {
	if !json.Valid(value) {
		return nil, errors.New("it is not one JSON value")
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	var out any
	err := dec.Decode(&out)
	return out, err
}

// encode returns a decoded value as JSON without escaping what only HTML needs.
func encode(value any) json.RawMessage {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) // a decoded value always encodes
	return bytes.TrimSpace(out.Bytes())
}

func orNull(params json.RawMessage) json.RawMessage {
	if len(params) == 0 {
		return json.RawMessage("null")
	}
	return params
}

// splitPointer returns the names in a JSON pointer (RFC 6901).
func splitPointer(pointer string) ([]string, error) {
	if problem := lineProblem(pointer, MaxReason); problem != "" {
		return nil, errors.New(problem)
	}
	if pointer == "" {
		return nil, nil
	}
	if pointer[0] != '/' {
		return nil, errors.New("the JSON pointer " + quote(pointer) + " does not begin with /")
	}
	names := strings.Split(pointer[1:], "/")
	for i, name := range names {
		plain := strings.NewReplacer("~0", "", "~1", "").Replace(name)
		if strings.Contains(plain, "~") {
			return nil, errors.New("in the JSON pointer " + quote(pointer) + " ~ is spelled ~0, and / within a name ~1")
		}
		names[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	}
	return names, nil
}
