package approval_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"superstep.dev/approval"
)

var entries = rapid.Custom(func(t *rapid.T) approval.Entry {
	text := rapid.StringN(0, 20, 100)
	return approval.Entry{
		At:     time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "seconds"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns")),
		Kind:   rapid.SampledFrom([]approval.Kind{approval.KindAsked, approval.KindVoted, approval.KindRefused}).Draw(t, "kind"),
		Thread: text.Draw(t, "thread"), Who: text.Draw(t, "who"), Reason: text.Draw(t, "reason"), Count: rapid.IntRange(0, 9).Draw(t, "count"),
	}
})

func appended(all []approval.Entry) ([]approval.Entry, approval.Chain) {
	var c approval.Chain
	out := make([]approval.Entry, len(all))
	for i, e := range all {
		out[i] = c.Append(e)
	}
	return out, c
}

func stored(t require.TestingT, e []approval.Entry) (out []approval.Entry) {
	text, err := json.Marshal(e)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

// TestChainHolds: whatever is appended verifies, also after it was stored, and in parts.
func TestChainHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, end := appended(rapid.SliceOfN(entries, 1, 10).Draw(t, "entries"))
		all = stored(t, all)
		cut := rapid.IntRange(0, len(all)).Draw(t, "cut")
		middle, err := approval.VerifyEntries(approval.Chain{}, all[:cut])
		require.NoError(t, err)
		got, err := approval.VerifyEntries(middle, all[cut:])
		require.NoError(t, err)
		require.NoError(t, got.Ends(end))
	})
}

// TestChainBreaks: one thing is done to a chain, and it shows.
func TestChainBreaks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, end := appended(rapid.SliceOfN(entries, 2, 10).Draw(t, "entries"))
		i := rapid.IntRange(0, len(all)-1).Draw(t, "at")
		switch rapid.SampledFrom([]string{"edit", "rehash", "drop", "swap", "insert", "repeat"}).Draw(t, "what") {
		case "edit":
			edit(t, &all[i])
		case "rehash": // an edit by somebody who knows how entries are hashed
			before := approval.Chain{Count: i, Head: all[i].Before}
			edit(t, &all[i])
			all[i] = before.Append(all[i])
		case "drop":
			all = slices.Delete(all, i, i+1)
		case "swap":
			j := (i + 1) % len(all)
			all[i], all[j] = all[j], all[i]
		case "insert":
			forged := entries.Draw(t, "forged")
			forged.Reason += "!"
			before := approval.Chain{Count: i, Head: all[i].Before}
			all = slices.Insert(all, i, before.Append(forged))
		case "repeat":
			all = slices.Insert(all, i, all[i])
		}
		got, err := approval.VerifyEntries(approval.Chain{}, all)
		if err == nil {
			err = got.Ends(end)
		}
		var broken *approval.BrokenError
		require.ErrorAs(t, err, &broken)
		require.NotZero(t, broken.Seq)
	})
}

func edit(t *rapid.T, e *approval.Entry) {
	switch rapid.IntRange(0, 6).Draw(t, "field") {
	case 0:
		e.Who += "x"
	case 1:
		e.At = e.At.Add(time.Nanosecond)
	case 2:
		e.Count++
	case 3:
		e.Verdict += "x"
	case 4:
		e.Policy += "x"
	case 5:
		e.Code += "x"
	case 6:
		e.ParamsHash += "x"
	}
}

// TestChainIsWhatItWas holds the hashes to those of audits that are kept somewhere.
func TestChainIsWhatItWas(t *testing.T) {
	_, end := appended([]approval.Entry{
		{At: now, Kind: approval.KindAsked, Thread: "t", Question: "q", ParamsHash: "sha256:00"},
		{At: now.Add(1500 * time.Millisecond), Kind: approval.KindAnswered, Thread: "t", Question: "q", Who: "Åsa <x>", Verdict: approval.VerdictApprove},
	})
	require.Equal(t, approval.Chain{Count: 2, Head: "sha256:27565931ea4c3a9343ae8abb7c15ca278104859def5c830af58ba83dc0cee86c"}, end)
}

// TestAppendBounds: what an entry holds is bounded, and the same after it was stored.
func TestAppendBounds(t *testing.T) {
	var c approval.Chain
	e := c.Append(approval.Entry{
		At:     time.Date(12026, 1, 1, 0, 0, 0, 0, time.FixedZone("", 3600)),
		Reason: strings.Repeat("é", approval.MaxReason), Who: "a\xff",
	})
	require.LessOrEqual(t, len(e.Reason), approval.MaxReason)
	require.Equal(t, "a\uFFFD", e.Who)
	_, err := approval.VerifyEntries(approval.Chain{}, stored(t, []approval.Entry{e}))
	require.NoError(t, err)
}
