package secret_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/thread/secret"
)

func writeFile(path string, text []byte) error { return os.WriteFile(path, text, 0o600) }

func TestARingIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	r := ring(t, "k-1", "k-2", "k-3")
	again, err := secret.ParseRing(r.Text())
	require.NoError(t, err)
	require.Equal(t, r, again)
	require.Equal(t, r.Text(), again.Text())
	harmless(t, fmt.Sprintf("%v %+v %#v %s %x %q %d", r, r, r, r, r, r.Keys(), r.Keys()), r)
}

func TestTheNewestKeyWrites(t *testing.T) {
	t.Parallel()
	r := ring(t, "k-1", "k-2")
	for at, want := range map[time.Duration]string{-time.Hour: "k-1", 0: "k-1", time.Hour - time.Second: "k-1", time.Hour: "k-2", 99 * time.Hour: "k-2"} {
		k, ok := r.Writes(day.Add(at))
		require.True(t, ok)
		require.Equal(t, want, k.ID, at)
	}
	_, ok := secret.Ring{}.Writes(day)
	require.False(t, ok)

	_, _, err := r.Rotate("k-1", day, day)
	require.ErrorContains(t, err, "k-1 is there twice")
	_, _, err = r.Rotate("no id", day, day)
	require.ErrorContains(t, err, "letters, digits")
	more, k, err := r.Rotate("", day, day.Add(3*time.Hour))
	require.NoError(t, err)
	require.Regexp(t, `^k-20260301-[a-z0-9]{8}$`, k.ID)
	require.Len(t, more.Keys(), 3)
	require.Len(t, r.Keys(), 2)
	_, err = more.Without("k-2", day.Add(2*time.Hour))
	require.ErrorContains(t, err, "k-2 writes")
	_, err = more.Without("k-9", day)
	require.ErrorContains(t, err, `no key "k-9"`)
	less, err := more.Without("k-1", day.Add(2*time.Hour))
	require.NoError(t, err)
	require.Equal(t, []secret.Key{more.Keys()[1], more.Keys()[2]}, less.Keys())
}

// badRings are texts that no key file may have, from a right one.
func badRings(right string) map[string]string {
	id, key := `"id": "k-1"`, right[strings.Index(right, `"key": "`)+8:]
	key = key[:44]
	return map[string]string{
		"empty": "", "garbage": "\x00\x01garbage", "null": "null", "no keys": `{"keys": []}`, "a list": `[]`, "cut off": right[:len(right)-20],
		"followed":      right + "{}",
		"unknown field": strings.Replace(right, `"made"`, `"when"`, 1),
		"short key":     strings.Replace(right, key, key[:40], 1),
		"plain key":     strings.Replace(right, key, "a password", 1),
		"zero key":      strings.Replace(right, key, strings.Repeat("A", 43)+"=", 1),
		"id twice":      strings.Replace(right, `"k-2"`, `"k-1"`, 1),
		"bad id":        strings.Replace(right, id, `"id": "../k"`, 1),
		"empty id":      strings.Replace(right, id, `"id": ""`, 1),
		"long id":       strings.Replace(right, id, `"id": "`+strings.Repeat("k", 65)+`"`, 1),
		"a number":      strings.Replace(right, id, `"id": 7`, 1),
		"no time":       strings.Replace(right, `"2026-03-01T09:00:00Z"`, `"yesterday"`, 1),
		"zero time":     strings.Replace(right, `"2026-03-01T09:00:00Z"`, `"0001-01-01T00:00:00Z"`, 1),
		"huge":          right + strings.Repeat(" ", secret.MaxRingBytes),
	}
}

func TestARingIsRefused(t *testing.T) {
	t.Parallel()
	r := ring(t, "k-1", "k-2")
	for name, text := range badRings(string(r.Text())) {
		_, err := secret.ParseRing([]byte(text))
		require.Error(t, err, name)
		harmless(t, err.Error(), r)
		require.NotContains(t, err.Error(), "a password")
		require.NotContains(t, err.Error(), "\n")
	}
	text := string(ring(t, "k-1").Text())
	entry := strings.TrimSpace(text[strings.Index(text, "[")+1 : strings.Index(text, "]")])
	_, err := secret.ParseRing([]byte(`{"keys":[` + entry + "," + strings.Replace(entry, "k-1", "k-2", 1) + "]}"))
	require.ErrorContains(t, err, "k-1 and k-2 are the same key")
}

// FuzzParseRing: any text is a ring or an error, and a ring is written as it is read.
func FuzzParseRing(f *testing.F) {
	r, _, err := secret.Ring{}.Rotate("k-1", day, day)
	require.NoError(f, err)
	for _, text := range badRings(string(r.Text())) {
		f.Add([]byte(text))
	}
	f.Add(r.Text())
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := secret.ParseRing(text)
		if err != nil {
			return
		}
		again, err := secret.ParseRing(r.Text())
		require.NoError(t, err)
		require.Equal(t, r.Text(), again.Text())
	})
}

func TestAFileIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := ring(t, "k-1")
	open := filepath.Join(dir, "open")
	require.NoError(t, os.WriteFile(open, r.Text(), 0o644))
	garbage := filepath.Join(dir, "garbage")
	require.NoError(t, writeFile(garbage, []byte("garbage")))
	for path, says := range map[string]string{open: "others may read it", garbage: "not the JSON", dir: "directory", filepath.Join(dir, "none"): "no such file"} {
		_, err := secret.File(path, secret.Options{})
		require.ErrorIs(t, err, secret.ErrBadKeys)
		require.ErrorContains(t, err, says)
		require.Equal(t, 1, strings.Count(err.Error(), path), err)
		harmless(t, err.Error(), r)
	}
}

// problems are what Options.Log was told.
type problems struct {
	mu   sync.Mutex
	told []string
}

func (p *problems) log(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, fmt.Sprint(err))
}

// TestAFileThatChanges while it is used: a new key reads at once, and writes when it says; garbage changes nothing, and is told once.
func TestAFileThatChanges(t *testing.T) {
	t.Parallel()
	now := day
	one := ring(t, "k-1")
	path := written(t, one)
	var heard problems
	keys, err := secret.File(path, secret.Options{Log: heard.log, Now: func() time.Time { return now }})
	require.NoError(t, err)
	first := encode(t, keys, payload([]byte("first")))

	two, _, err := one.Rotate("k-2", day, day.Add(time.Minute))
	require.NoError(t, err)
	replace(t, path, two.Text())
	ahead, err := secret.File(path, secret.Options{Now: func() time.Time { return now.Add(time.Hour) }})
	require.NoError(t, err)
	second := encode(t, ahead, payload([]byte("second")))
	require.Equal(t, "k-2", string(second.Metadata[secret.MetadataKey]))
	got, err := decode(keys, second)
	require.NoError(t, err, "read at once, though the file was read within the second")
	require.Equal(t, "second", string(got.Data))
	require.Equal(t, "k-1", string(encode(t, keys, payload(nil)).Metadata[secret.MetadataKey]))
	now = now.Add(time.Minute)
	require.Equal(t, "k-2", string(encode(t, keys, payload(nil)).Metadata[secret.MetadataKey]))

	foreign := encode(t, keysOf(t, ring(t, "k-9")), payload(nil))
	for _, text := range []string{"garbage", ""} {
		replace(t, path, []byte(text))
		for range 3 {
			_, err = decode(keys, foreign) // reads the file anew
			require.ErrorIs(t, err, secret.ErrUnknownKey)
		}
		_, err = decode(keys, first)
		require.NoError(t, err)
		require.Equal(t, "k-2", string(encode(t, keys, payload(nil)).Metadata[secret.MetadataKey]))
	}
	require.NoError(t, os.Remove(path))
	_, err = decode(keys, foreign)
	require.ErrorIs(t, err, secret.ErrUnknownKey)
	replace(t, path, two.Text())
	_, err = decode(keys, foreign)
	require.ErrorIs(t, err, secret.ErrUnknownKey)
	require.Len(t, heard.told, 4, "%q", heard.told)
	require.Contains(t, heard.told[0], "those that were read last stay in force")
	require.Contains(t, heard.told[1], `the key "k-9", which is not among`)
	require.Contains(t, heard.told[2], "no such file")
	require.Equal(t, "<nil>", heard.told[3])
	harmless(t, fmt.Sprint(heard.told), two)
}

func TestACommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := ring(t, "k-1")
	path := filepath.Join(dir, "a file")
	require.NoError(t, writeFile(path, r.Text()))
	keys, err := secret.Command("cat '"+path+"'", secret.Options{})
	require.NoError(t, err)
	sealed := encode(t, keys, payload([]byte(marker)))
	got, err := decode(keysOf(t, r), sealed)
	require.NoError(t, err)
	require.Equal(t, marker, string(got.Data))
	require.Equal(t, "the command cat", keys.Where())

	for line, says := range map[string]string{
		"":                             "split into words",
		"cat 'unclosed":                "split into words",
		"cat " + dir + "/none":         "exit status 1",
		dir + "/none":                  "no such file",
		"echo " + marker:               "not the JSON",
		"sh -c 'yes | head -c 100000'": "more than 65536 bytes",
	} {
		_, err := secret.Command(line, secret.Options{})
		require.ErrorIs(t, err, secret.ErrBadKeys, line)
		require.ErrorContains(t, err, says, line)
		require.NotContains(t, err.Error(), marker)
	}
}

// TestACommandLineIsTakenWhole or refused: half of a line may print other keys than the whole line.
func TestACommandLineIsTakenWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ring")
	require.NoError(t, writeFile(path, ring(t, "k-1").Text()))
	for _, rest := range []string{"; true", "| cat", "&& true", "& ", "> other", "< other"} {
		_, err := secret.Command("cat '"+path+"' "+rest, secret.Options{})
		require.ErrorIs(t, err, secret.ErrBadKeys, rest)
		require.ErrorContains(t, err, "needs a shell", rest)
	}
	_, err := secret.Command("sh -c \"cat '"+path+"' | cat\"", secret.Options{})
	require.NoError(t, err)
}

// TestACommandThatHangs does not hold up those who have keys: it is run beside them.
func TestACommandThatHangs(t *testing.T) {
	t.Parallel()
	began := time.Now()
	_, err := secret.Command("sleep 60", secret.Options{})
	require.ErrorContains(t, err, "takes longer than 5s")
	require.Less(t, time.Since(began), 50*time.Second)
}
