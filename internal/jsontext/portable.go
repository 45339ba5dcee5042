package jsontext

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Portable returns why JSON is not read in the same way by every program, nil when it is: text that is not UTF-8, half a character (a lone
// surrogate, such as \ud800), or a number beyond what a float64 holds, such as 1e999. Whoever keeps such a value makes it, and lists that
// have it, unreadable for some programs.
func Portable(v []byte) error {
	if !utf8.Valid(v) {
		return errors.New("it has bytes that are not UTF-8")
	}
	quoted := false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			n, err := escape(v[i:])
			if err != nil {
				return err
			}
			i += n - 1
		case !quoted && (c == '-' || c >= '0' && c <= '9'):
			n, err := number(v[i:])
			if err != nil {
				return err
			}
			i += n - 1
		}
	}
	return nil
}

// escape is how many bytes the escape has with which v begins, two for half a character each.
func escape(v []byte) (int, error) {
	unit, ok := unitOf(v)
	switch {
	case !ok:
		return min(2, len(v)), nil
	case unit >= 0xd800 && unit <= 0xdbff:
		if low, ok := unitOf(v[6:]); ok && low >= 0xdc00 && low <= 0xdfff {
			return 12, nil
		}
	case unit < 0xdc00 || unit > 0xdfff:
		return 6, nil
	}
	return 0, fmt.Errorf("it has half a character, %s", v[:6])
}

// unitOf is what the escape \uXXXX stands for with which v begins.
func unitOf(v []byte) (uint64, bool) {
	if len(v) < 6 || v[0] != '\\' || v[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(v[2:6]), 16, 32)
	return unit, err == nil
}

// number is how many bytes the number has with which v begins.
func number(v []byte) (int, error) {
	n, long := 0, false
	for n < len(v) {
		c := v[n]
		if c == 'e' || c == 'E' {
			long = true
		} else if c != '-' && c != '+' && c != '.' && (c < '0' || c > '9') {
			break
		}
		n++
	}
	if long || n > 300 {
		if _, err := strconv.ParseFloat(string(v[:n]), 64); errors.Is(err, strconv.ErrRange) {
			return 0, fmt.Errorf("it has a number that is too large, %.40s", v[:n])
		}
	}
	return n, nil
}
