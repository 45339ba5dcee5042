package approval_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/approval"
)

// record is an audit of three entries, and its end.
func record(t *testing.T) ([]approval.Entry, approval.Chain) {
	t.Helper()
	var chain approval.Chain
	var all []approval.Entry
	for _, e := range []approval.Entry{
		{Kind: approval.KindAsked, Question: "q-1"},
		{Kind: approval.KindRefused, Who: "mallory", Code: approval.CodeSignature, Reason: strings.Repeat("<\x01&>", approval.MaxReason)},
		{Kind: approval.KindAnswered, Question: "q-1", Who: "ann", Verdict: approval.VerdictApprove},
	} {
		e.At, e.Thread = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), "t-1"
		all = append(all, chain.Append(e))
	}
	return all, chain
}

// TestExportedAuditIsProvenLater: what was written somewhere else is read again and is what was recorded; what was changed
// there is not.
func TestExportedAuditIsProvenLater(t *testing.T) {
	all, chain := record(t)
	var sink bytes.Buffer
	require.NoError(t, approval.WriteExport(&sink, approval.Export{Entries: all}))
	require.Equal(t, 3, strings.Count(sink.String(), "\n"))
	again, err := approval.ReadExport(bytes.NewReader(sink.Bytes()))
	require.NoError(t, err)
	require.Equal(t, chain, again.Chain)
	end, err := approval.VerifyEntries(approval.Chain{}, again.Entries)
	require.NoError(t, err)
	require.NoError(t, end.Ends(chain))

	forged, err := approval.ReadExport(strings.NewReader(strings.ReplaceAll(sink.String(), `"who":"ann"`, `"who":"bob"`)))
	require.NoError(t, err)
	_, err = approval.VerifyEntries(approval.Chain{}, forged.Entries)
	var broken *approval.BrokenError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, 3, broken.Seq)
}

// full is a sink that takes so many bytes.
type full struct{ left int }

var errFull = errors.New("no space left")

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.left {
		return 0, errFull
	}
	f.left -= len(p)
	return len(p), nil
}

func TestExportThatFailsSaysWhere(t *testing.T) {
	all, _ := record(t)
	err := approval.WriteExport(&full{left: 1000}, approval.Export{Entries: all})
	require.ErrorIs(t, err, errFull)
	require.ErrorContains(t, err, "entry 2")

	_, err = approval.ReadExport(strings.NewReader("{\"seq\":1}\n{\"seq\":}\n"))
	require.ErrorContains(t, err, "line 2")
	_, err = approval.ReadExport(strings.NewReader("{}\n" + strings.Repeat("x", 1<<20)))
	require.ErrorContains(t, err, "line 2")
}
