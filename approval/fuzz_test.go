package approval_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/approval"
)

// FuzzParseReply: a reply that is taken is the same when it is written and read again, and its parameters have a hash.
func FuzzParseReply(f *testing.F) {
	f.Add(`{"verdict":"approve"}`)
	f.Add(`{"verdict":"edit","params":{"amount":9007199254740993,"a":[{"b":1e400}]},"reason":"é"}`)
	f.Add(`{"verdict":"edit","params":{"\u0000number":"1","\ud800":1}}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := approval.ParseReply(json.RawMessage(text))
		if err != nil {
			return
		}
		hash, err := approval.HashParams(r.Params)
		require.NoError(t, err)
		again, err := json.Marshal(r)
		require.NoError(t, err)
		r2, err := approval.ParseReply(again)
		require.NoError(t, err)
		hash2, err := approval.HashParams(r2.Params)
		require.NoError(t, err)
		require.Equal(t, hash, hash2)
		require.Equal(t, r.Reason, r2.Reason)
	})
}

// FuzzAction: an action that can be asked about has one digest, however it is stored, and hiding anything leaves JSON.
func FuzzAction(f *testing.F) {
	f.Add(`{"tool":"pay","summary":"Pay","params":{"card":{"no":"4111"}},"secrets":["/card/no"],"quorum":2}`)
	f.Add(`{"tool":"pay","summary":"Pay","within_ms":5000,"warn_ms":1,"silence":"default","default":"approve","watch":{"a":"b"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var a approval.Action
		if json.Unmarshal([]byte(text), &a) != nil {
			return
		}
		a, err := a.Normal()
		if err != nil {
			return
		}
		stored, err := json.Marshal(a)
		require.NoError(t, err)
		var read approval.Action
		require.NoError(t, json.Unmarshal(stored, &read))
		read, err = read.Normal()
		require.NoError(t, err)
		require.Equal(t, a.Digest(), read.Digest())
		masked := approval.Masked(a.Params, a.Secrets)
		require.True(t, len(masked) == 0 || json.Valid(masked))
		changes, _ := approval.Diff(a.Params, masked, nil)
		require.LessOrEqual(t, len(changes), len(a.Secrets))
		for _, c := range changes {
			require.Equal(t, `"***"`, string(c.Now))
		}
	})
}
