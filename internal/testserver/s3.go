package testserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The credentials of an S3 server of a test. They open nothing else.
const (
	S3AccessKey = "access-of-a-test"
	S3SecretKey = "secret-of-a-test"
)

// S3 is an S3 server of a test's own, versitygw over a directory: a process that can be killed. Its address and what it keeps stay the
// same over a new start. Its methods are not for concurrent use.
type S3 struct {
	// Endpoint is http://HOST:PORT. Dir has a folder for each bucket, with its objects as files.
	Endpoint, Dir string
	binary        string
	child         *child
}

// s3Binary builds the S3 server once per process.
var s3Binary = sync.OnceValues(func() (string, error) {
	return toolBinary("versitygw", "test/tools/s3", "github.com/versity/versitygw/cmd/versitygw", "the S3 server: two minutes")
})

// StartS3 starts an S3 server over dir with an empty bucket of each name, and ends it at the test's end.
func StartS3(t testing.TB, dir string, buckets ...string) *S3 {
	t.Helper()
	binary, err := s3Binary()
	if err != nil {
		t.Fatalf("an S3 server for this test: %v", err)
	}
	s := &S3{Dir: filepath.Join(dir, "objects"), binary: binary}
	for _, folder := range append([]string{"../metadata"}, buckets...) {
		if err := os.MkdirAll(filepath.Join(s.Dir, folder), 0o755); err != nil {
			t.Fatalf("an S3 server for this test: %v", err)
		}
	}
	for range 3 { // the port may be another process's
		s.Endpoint = ""
		if err = s.Restart(); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatalf("an S3 server for this test: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the S3 server at %s wrote:\n%s", s.Endpoint, s.child.output)
		}
		if err := s.Kill(); err != nil {
			t.Errorf("end the S3 server: %v", err)
		}
	})
	return s
}

// Kill ends the server as a crash does (SIGKILL). What it acknowledged is in its directory.
func (s *S3) Kill() error { return s.child.kill() }

// Restart starts the server on its directory and its address, and returns once it serves.
func (s *S3) Restart() error {
	if s.Endpoint == "" {
		s.Endpoint = fmt.Sprintf("http://127.0.0.1:%d", freePort())
	}
	cmd := exec.Command(s.binary, "--port", strings.TrimPrefix(s.Endpoint, "http://"), "--health", "/health", "--quiet",
		"posix", "--sidecar", filepath.Join(filepath.Dir(s.Dir), "metadata"), s.Dir)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+S3AccessKey, "ROOT_SECRET_KEY="+S3SecretKey)
	var err error
	if s.child, err = spawn(cmd, ""); err != nil {
		return err
	}
	if err := s.awaitServing(); err != nil {
		return errors.Join(fmt.Errorf("start the S3 server: %w\n%s", err, s.child.output), s.child.kill())
	}
	return nil
}

func (s *S3) awaitServing() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint+"/health", nil)
		if err != nil {
			return err
		}
		if answer, err := http.DefaultClient.Do(request); err == nil {
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-s.child.exited:
			return fmt.Errorf("it ended before it served: %s", s.child.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("it does not serve after %v", startTimeout)
		}
	}
}
