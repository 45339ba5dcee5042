package approval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

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
