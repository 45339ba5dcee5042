package s3

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
)

const (
	scheme          = "s3://"
	defaultEndpoint = "https://s3.amazonaws.com"
	defaultRegion   = "us-east-1"
	// maxPrefix bounds a prefix, in bytes. S3 takes names of 1,024.
	maxPrefix = 512
)

// Config names a bucket. Of its fields only Bucket is needed.
type Config struct {
	Bucket string
	// Prefix stands before the names of all objects, with a slash between; "" for none. At most 512 bytes.
	Prefix string
	// Endpoint is the server, https://HOST[:PORT] or http://HOST[:PORT]; "" means AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL of the
	// environment, and then Amazon's own.
	Endpoint string
	// Region is the bucket's; "" means AWS_REGION or AWS_DEFAULT_REGION, and then us-east-1.
	Region string
	// Credentials are those of the calls; nil means AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (with AWS_SESSION_TOKEN) of the environment,
	// and then the file of AWS_SHARED_CREDENTIALS_FILE or ~/.aws/credentials with the profile AWS_PROFILE.
	Credentials *credentials.Credentials
}

// Is reports whether a place of values is the address of a bucket: s3://….
func Is(place string) bool { return strings.HasPrefix(place, scheme) }

// Parse reads s3://BUCKET[/PREFIX][?endpoint=URL&region=NAME]. An address has no credentials: one with a user or a password is refused,
// and no error repeats it.
func Parse(address string) (Config, error) {
	const form = "an address of a bucket is s3://BUCKET[/PREFIX][?endpoint=URL&region=NAME]"
	u, err := url.Parse(address)
	if err != nil || !Is(address) {
		return Config{}, errors.New(form)
	}
	if u.User != nil {
		return Config{}, errSecret
	}
	cfg := Config{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || u.Fragment != "" {
		return Config{}, errors.New(form)
	}
	for name, values := range query {
		switch {
		case len(values) != 1:
			return Config{}, errors.New(form)
		case name == "endpoint":
			cfg.Endpoint = values[0]
		case name == "region":
			cfg.Region = values[0]
		default:
			return Config{}, fmt.Errorf("%s, it knows no %.40q", form, name)
		}
	}
	return cfg, cfg.check()
}

var errSecret = errors.New("an address of a bucket has no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a file by AWS_SHARED_CREDENTIALS_FILE")

// check says what is wrong with a Config.
func (c Config) check() error {
	if err := s3utils.CheckValidBucketNameStrict(c.Bucket); err != nil {
		return fmt.Errorf("the bucket %.80q: %w", c.Bucket, err)
	}
	if c.Prefix != "" && (len(c.Prefix) > maxPrefix || path.Clean(c.Prefix) != c.Prefix || strings.HasPrefix(c.Prefix, "/") || strings.HasPrefix(c.Prefix, "..") ||
		s3utils.CheckValidObjectName(c.Prefix) != nil) {
		return fmt.Errorf("the prefix %.80q is no path of at most %d bytes, such as superstep/values", c.Prefix, maxPrefix)
	}
	_, _, err := c.endpoint()
	return err
}

// endpoint is the server's HOST[:PORT], and whether it is called with TLS.
func (c Config) endpoint() (host string, secure bool, err error) {
	u, err := url.Parse(cmp.Or(c.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), defaultEndpoint))
	switch {
	case err == nil && u.User != nil:
		return "", false, errSecret
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "":
		return "", false, errors.New("the endpoint of a bucket is https://HOST[:PORT] or http://HOST[:PORT]")
	}
	return u.Host, u.Scheme == "https", nil
}

// where names the place, for people.
func (c Config) where(host string) string {
	return scheme + path.Join(c.Bucket, c.Prefix) + " at " + host
}
