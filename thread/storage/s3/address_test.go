package s3_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev/thread/storage"
	"superstep.dev/thread/storage/s3"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]s3.Config{
		"s3://values":                     {Bucket: "values"},
		"s3://values/":                    {Bucket: "values"},
		"s3://values/of/superstep/":       {Bucket: "values", Prefix: "of/superstep"},
		"s3://values?region=eu-central-1": {Bucket: "values", Region: "eu-central-1"},
		"s3://values/p?endpoint=http://127.0.0.1:9000&region=r": {Bucket: "values", Prefix: "p", Endpoint: "http://127.0.0.1:9000", Region: "r"},
	} {
		got, err := s3.Parse(address)
		require.NoError(t, err, address)
		assert.Equal(t, want, got)
		assert.True(t, s3.Is(address))
	}
}

// TestBadAddresses are refused, without a word of what may be a secret.
func TestBadAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"", "values", "s3:values", "s3://", "s3:///prefix", "https://values", "s3://Upper-Case", "s3://v", "s3://values/../other", "s3://values/a/../../b",
		"s3://values/a//b", "s3://values/" + strings.Repeat("p", 513), "s3://values?acl=public", "s3://values?region=a&region=b", "s3://values#part",
		"s3://values?endpoint=ftp://host", "s3://values?endpoint=http://host/path", "s3://values?endpoint=host:9000", "s3://values?%zz",
		"s3://key:a-secret@values", "s3://key:a-secret%zz@values", "s3://values?endpoint=http://key:a-secret@host", "s3://values?secret=",
	} {
		_, err := s3.Parse(address)
		require.Error(t, err, address)
		assert.NotContains(t, err.Error(), "a-secret")
	}
}

// TestNoCredentials are an error before anything is called.
func TestNoCredentials(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
	_, err := s3.Open(t.Context(), s3.Config{Bucket: "values"}, storage.Options{})
	require.ErrorContains(t, err, "AWS_ACCESS_KEY_ID")
}
