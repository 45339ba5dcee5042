package storage_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"superstep.dev/thread/storage"
)

// What makes the test's program one that stores turns: where, and the state that it goes on from.
const envStores, envFrom = "STORAGE_TEST_STORES", "STORAGE_TEST_FROM"

// stored is a line of such a program: a state that was stored when the line was written.
type stored struct {
	Turns int               `json:"turns"`
	Claim map[string]string `json:"claim"`
}

func TestMain(m *testing.M) {
	dir := os.Getenv(envStores)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := storeTurns(dir, os.Getenv(envFrom)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// storeTurns reads a state and stores those behind it, one after the other, until it is killed.
func storeTurns(dir, from string) error {
	s, err := storage.Files(dir, storage.Options{})
	if err != nil {
		return err
	}
	at := stored{Turns: 60}
	if from != "" {
		if err := json.Unmarshal([]byte(from), &at); err != nil {
			return err
		}
		got, err := retrieve(context.Background(), s, converter.StorageDriverClaim{ClaimData: at.Claim})
		if err != nil {
			return err
		}
		if !proto.Equal(got[0], talk(at.Turns)) {
			return fmt.Errorf("after %d turns another state was read", at.Turns)
		}
	}
	for {
		at.Turns++
		claims, err := store(context.Background(), s, talk(at.Turns))
		if err != nil {
			return err
		}
		at.Claim = claims[0].ClaimData
		line, err := json.Marshal(at)
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
}

// TestKilledWhileItStores: processes that store turns are killed at any moment; the next one reads the last state that was stored and goes
// on from it, and all that were stored are read.
func TestKilledWhileItStores(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	_, dir := opened(t)
	last, forms := "", map[string]int{}
	var all []stored
	for len(all) < 300 {
		p := exec.Command(os.Args[0])
		p.Env, p.Stderr = append(os.Environ(), envStores+"="+dir, envFrom+"="+last), t.Output()
		out, err := p.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, p.Start())
		lines, most := bufio.NewScanner(out), 1+random.IntN(30)
		for n := 0; n < most && lines.Scan(); n++ {
			if last = lines.Text(); n == most-1 {
				// Not a wait for anything: the moment of the kill is what is random.
				time.Sleep(time.Duration(random.IntN(2000)) * time.Microsecond)
				require.NoError(t, p.Process.Kill())
			}
			var one stored
			require.NoError(t, json.Unmarshal([]byte(last), &one))
			all = append(all, one)
			forms[one.Claim["form"]]++
		}
		err = p.Wait()
		var ended *exec.ExitError
		require.ErrorAs(t, err, &ended)
		require.False(t, ended.Exited(), "it ended by itself")
	}
	t.Logf("%v", forms)
	assert.Greater(t, forms["delta"], 100)
	for _, one := range all {
		got, err := retrieve(t.Context(), reopened(t, dir), converter.StorageDriverClaim{ClaimData: one.Claim})
		require.NoError(t, err)
		require.True(t, proto.Equal(talk(one.Turns), got[0]))
	}
}
