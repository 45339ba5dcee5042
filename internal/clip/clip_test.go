package clip_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"superstep.dev/internal/clip"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"short", 5, "short"},
		{"too long", 7, "too …"},
		{"ääää", 7, "ää…"},
		{"ääää", 6, "ä…"},
		{"abc", 2, ""},
		{"a\xffb", 5, "a\uFFFDb"},
		{"a\xffbcde", 7, "a\uFFFD…"},
		{"", 0, ""},
	} {
		if got := clip.Text(c.text, c.most); got != c.want {
			t.Errorf("%q in %d bytes is %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("hello", 3)
	f.Add("\xf0\x9f\x98\x80\x80", 4)
	f.Fuzz(func(t *testing.T, text string, most int) {
		most = max(most, 0) % 64
		got := clip.Text(text, most)
		if len(got) > most || !utf8.ValidString(got) {
			t.Errorf("%q in %d bytes is %q", text, most, got)
		}
		if kept := strings.TrimSuffix(got, "…"); !strings.HasPrefix(strings.ToValidUTF8(text, "\uFFFD"), kept) {
			t.Errorf("%q in %d bytes is %q, which is not its beginning", text, most, got)
		}
	})
}
