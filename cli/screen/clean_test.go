package screen

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "",
		"plain":                "plain",
		"  a \n\t b  ":         "a b",
		"a\u00a0b":             "a b",
		"\x1b[31mred\x1b[0m":   `\u001b[31mred\u001b[0m`,
		"a\u202eb":             `a\u202eb`, // would turn the reading direction
		"bell\a":               `bell\u0007`,
		"\xff":                 `\ufffd`,
		"日本語 ü 👩‍👩‍👧":          "日本語 ü 👩‍👩‍👧",
		"a\u2028b":             "a b",
		"\u009b31mC1 sequence": `\u009b31mC1 sequence`,
	} {
		require.Equal(t, want, Clean(text))
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a \x1b b")
	f.Fuzz(func(t *testing.T, text string) {
		got := Clean(text)
		require.True(t, utf8.ValidString(got))
		require.Equal(t, got, Clean(got), "cleaning twice changes nothing")
		require.False(t, strings.ContainsFunc(got, unicode.IsControl))
		require.False(t, strings.Contains(got, "  "))
	})
}

func TestShorten(t *testing.T) {
	require.Equal(t, "äöü", Shorten("äöü", 3))
	require.Equal(t, "äö…", Shorten("äöüß", 3))
}

func TestShortDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0ms",
		0:            "0ms",
		31*time.Millisecond + 499*time.Nanosecond: "31ms",
		999 * time.Millisecond:                    "999ms",
		999600 * time.Microsecond:                 "1.0s",
		1234 * time.Millisecond:                   "1.2s",
		9949 * time.Millisecond:                   "9.9s",
		9951 * time.Millisecond:                   "10s",
		59499 * time.Millisecond:                  "59s",
		59501 * time.Millisecond:                  "1m00s",
		185 * time.Second:                         "3m05s",
		2*time.Hour + 7*time.Minute:               "2h07m",
		47*time.Hour + 59*time.Minute:             "47h59m",
		12*24*time.Hour + time.Hour:               "12d",
	} {
		require.Equal(t, want, Duration(d), d.String())
	}
}
