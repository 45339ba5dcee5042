package e2e_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
	"superstep.dev/thread/storage"
	"superstep.dev/thread/storage/s3"
)

// inABucket has the rig's workers and its client keep large values in a bucket of a server of the test's own.
func (r *rig) inABucket() *testserver.S3 {
	r.t.Helper()
	server := testserver.StartS3(r.t, filepath.Join(r.dir, "s3"), "values")
	r.flags = []string{"--storage", "s3://values/of/superstep?endpoint=" + server.Endpoint}
	r.env = []string{"AWS_ACCESS_KEY_ID=" + testserver.S3AccessKey, "AWS_SECRET_ACCESS_KEY=" + testserver.S3SecretKey}
	values, err := s3.Open(r.t.Context(), s3.Config{Bucket: "values", Prefix: "of/superstep", Endpoint: server.Endpoint,
		Credentials: credentials.NewStaticV4(testserver.S3AccessKey, testserver.S3SecretKey, "")}, storage.Options{})
	require.NoError(r.t, err)
	r.client, err = superstep.NewClient(r.temporal, superstep.ClientConfig{TaskQueue: r.queue, Storage: values})
	require.NoError(r.t, err)
	return server
}

// objects counts what lies in a server's buckets.
func objects(t *testing.T, server *testserver.S3) (n int) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(server.Dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}))
	return n
}

// Workers are killed while what the run has lies in a bucket, and so is the S3 server: the run waits for it, and goes on to the right end.
func TestKilledWithValuesInABucket(t *testing.T) {
	for _, durability := range []superstep.Durability{superstep.DurabilitySync, superstep.DurabilityAsync, superstep.DurabilityExit} {
		t.Run(string(durability), func(t *testing.T) {
			r := newRig(t)
			server := r.inABucket()
			first := r.graphsWorker("worker-1")
			threadID := testserver.Queue(t)
			_, err := r.client.Start(t.Context(), thread.StartRequest{Graph: "hoards", Thread: threadID, Durability: durability,
				Input: encode(t, map[string]any{"dir": r.dir, "size": 1 << 20})})
			require.NoError(t, err)
			r.until("the second node runs", func() bool { return r.ran("two") > 0 })
			before := r.ran("two")
			r.kill(first)
			second := r.graphsWorker("worker-2")
			r.until("the second node runs again", func() bool { return r.ran("two") > before })
			require.NoError(t, server.Kill())
			r.put("go") // the rest of the run has nowhere to leave its values
			r.until("the third node runs", func() bool { return r.ran("three") > 0 })
			r.kill(second)
			require.NoError(t, server.Restart())
			r.graphsWorker("worker-3")
			r.wait(threadID, thread.StatusFinished)
			require.Equal(t, []string{"one", "two", "three"}, value[[]string](r, threadID, "log"))
			require.Equal(t, hoard(1<<20), value[string](r, threadID, "note"))
			require.NotZero(t, objects(t, server))
		})
	}
}
