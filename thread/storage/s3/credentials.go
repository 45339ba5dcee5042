package s3

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// fileCredentials are the credentials of AWS's files, which are read again when one of the files has changed, for instance because a key was renewed.
type fileCredentials struct {
	credentials.FileAWSCredentials
	seen string            // the files' stamps when they were read
	good credentials.Value // as they were last read
}

var _ credentials.Provider = (*fileCredentials)(nil)

// RetrieveWithCredContext implements [credentials.Provider]. Files that cannot be read leave the last credentials, and are read again at the next
// call.
func (f *fileCredentials) RetrieveWithCredContext(c *credentials.CredContext) (credentials.Value, error) {
	f.seen = awsFiles()
	found, err := f.FileAWSCredentials.RetrieveWithCredContext(c)
	switch {
	case err == nil && found.AccessKeyID != "":
		f.good = found
	case f.good.AccessKeyID != "":
		f.seen = ""
		return f.good, nil
	}
	return found, err
}

// Retrieve implements [credentials.Provider].
func (f *fileCredentials) Retrieve() (credentials.Value, error) {
	return f.RetrieveWithCredContext(nil)
}

// IsExpired implements [credentials.Provider].
func (f *fileCredentials) IsExpired() bool {
	return f.FileAWSCredentials.IsExpired() || f.seen != awsFiles()
}

// awsFiles returns a text that changes when one of the files does.
func awsFiles() string {
	home, _ := os.UserHomeDir() // without one there are no such files
	var all string
	for _, path := range []string{
		cmp.Or(os.Getenv("AWS_SHARED_CREDENTIALS_FILE"), filepath.Join(home, ".aws", "credentials")),
		cmp.Or(os.Getenv("AWS_CONFIG_FILE"), filepath.Join(home, ".aws", "config")),
	} {
		if info, err := os.Stat(path); err == nil {
			all += fmt.Sprintln(path, info.Size(), info.ModTime().UnixNano())
		}
	}
	return all
}
