package token_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/approval"
	"superstep.dev/approval/token"
)

// workerKey is a key that audits are signed with.
func workerKey(t testing.TB, id string) *token.Signer {
	private, _, err := token.Generate(approval.Owner{Worker: "workers of " + id}, id)
	require.NoError(t, err)
	s, err := token.ParseSigner(private)
	require.NoError(t, err)
	return s
}

// exported is an audit of four entries, signed.
func exported(t testing.TB, s *token.Signer) approval.Export {
	var x approval.Export
	for i, kind := range []approval.Kind{approval.KindPaused, approval.KindUnpaused, approval.KindCancelled, approval.KindRetried} {
		x.Entries = append(x.Entries, x.Chain.Append(approval.Entry{Kind: kind, Thread: "t-1", Claimed: "ann", Reason: fmt.Sprint("no. ", i),
			At: time.Date(2026, 1, 2, 3, 4, i, 0, time.UTC)}))
	}
	var err error
	x.Signed, err = s.SignHead(approval.Head{Thread: "t-1", Chain: x.Chain})
	require.NoError(t, err)
	return x
}

// chained chains entries anew, as somebody does who has an export and knows how entries are hashed.
func chained(all []approval.Entry) (out []approval.Entry, end approval.Chain) {
	for _, e := range all {
		out = append(out, end.Append(e))
	}
	return out, end
}

// TestExportIsProvenByItsHead: what is written, read and proven elsewhere with public keys alone.
func TestExportIsProvenByItsHead(t *testing.T) {
	s := workerKey(t, "w-1")
	keys, err := token.New(s.Key())
	require.NoError(t, err)
	x := exported(t, s)
	var file bytes.Buffer
	require.NoError(t, approval.WriteExport(&file, x))
	require.Equal(t, 5, strings.Count(file.String(), "\n"))
	read, err := approval.ReadExport(&file)
	require.NoError(t, err)
	require.Equal(t, x, read)
	head, err := read.Verify(keys, 1)
	require.NoError(t, err)
	require.Equal(t, approval.Head{Thread: "t-1", Chain: x.Chain, At: head.At, KeyID: "w-1", Worker: "workers of w-1"}, head)
	require.WithinDuration(t, time.Now(), head.At, time.Minute)
}

// TestForgedExports: whoever has an export, and even other keys, cannot make it say something else.
func TestForgedExports(t *testing.T) {
	ours, foreign := workerKey(t, "w-1"), workerKey(t, "w-1") // of one id
	other := workerKey(t, "w-2")
	private, _, err := token.Generate(approval.Owner{Person: "ann"}, "ann")
	require.NoError(t, err)
	ann, err := token.ParseSigner(private)
	require.NoError(t, err)
	keys, err := token.New(ours.Key(), ann.Key())
	require.NoError(t, err)
	signedBy := func(s *token.Signer, h approval.Head) string {
		signed, err := s.SignHead(h)
		require.NoError(t, err)
		return signed
	}
	parts := func(signed string) []string { return strings.Split(signed, ".") }
	forged := func(t *testing.T, signed string, change func(claims map[string]any)) string {
		p := parts(signed)
		text, err := base64.RawURLEncoding.DecodeString(p[1])
		require.NoError(t, err)
		claims := map[string]any{}
		require.NoError(t, json.Unmarshal(text, &claims))
		change(claims)
		text, err = json.Marshal(claims)
		require.NoError(t, err)
		return p[0] + "." + base64.RawURLEncoding.EncodeToString(text) + "." + p[2]
	}
	isBroken := func(t *testing.T, err error) {
		var broken *approval.BrokenError
		require.ErrorAs(t, err, &broken)
	}
	isRefused := func(code approval.Code) func(*testing.T, error) {
		return func(t *testing.T, err error) {
			var bad *approval.TokenError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, code, bad.Code, "%v", err)
		}
	}
	isUnsigned := func(t *testing.T, err error) {
		var unsigned *approval.UnsignedError
		require.ErrorAs(t, err, &unsigned)
	}
	for name, c := range map[string]struct {
		forge func(t *testing.T, x *approval.Export)
		want  func(*testing.T, error)
	}{
		"an entry edited":     {func(_ *testing.T, x *approval.Export) { x.Entries[2].Claimed = "bob" }, isBroken},
		"its end cut":         {func(_ *testing.T, x *approval.Export) { x.Entries = x.Entries[:3] }, isBroken},
		"all of it cut":       {func(_ *testing.T, x *approval.Export) { x.Entries = nil }, isBroken},
		"its beginning cut":   {func(_ *testing.T, x *approval.Export) { x.Entries = x.Entries[1:] }, isBroken},
		"an entry left out":   {func(_ *testing.T, x *approval.Export) { x.Entries = append(x.Entries[:1], x.Entries[2:]...) }, isBroken},
		"two entries swapped": {func(_ *testing.T, x *approval.Export) { x.Entries[1], x.Entries[2] = x.Entries[2], x.Entries[1] }, isBroken},
		"two entries swapped and chained anew": {func(_ *testing.T, x *approval.Export) {
			x.Entries[1], x.Entries[2] = x.Entries[2], x.Entries[1]
			x.Entries, x.Chain = chained(x.Entries)
		}, isBroken},
		"an entry edited and chained anew": {func(_ *testing.T, x *approval.Export) {
			x.Entries[2].Claimed = "bob"
			x.Entries, x.Chain = chained(x.Entries)
		}, isBroken},
		"chained anew, with the head's numbers changed": {func(t *testing.T, x *approval.Export) {
			x.Entries, x.Chain = chained(x.Entries[:3])
			x.Signed = forged(t, x.Signed, func(c map[string]any) { c["count"], c["head"] = x.Chain.Count, x.Chain.Head })
		}, isRefused(approval.CodeSignature)},
		"chained anew and signed by a foreign key of our id": {func(_ *testing.T, x *approval.Export) {
			x.Entries, x.Chain = chained(x.Entries[:3])
			x.Signed = signedBy(foreign, approval.Head{Thread: "t-1", Chain: x.Chain})
		}, isRefused(approval.CodeSignature)},
		"signed by a key that is not trusted": {func(_ *testing.T, x *approval.Export) {
			x.Signed = signedBy(other, approval.Head{Thread: "t-1", Chain: x.Chain})
		}, isRefused(approval.CodeSignature)},
		"an approval in place of the head": {func(t *testing.T, x *approval.Export) {
			signed, err := ann.Sign(approval.Claims{Thread: "t-1", Question: "q", Approver: "ann", Digest: x.Chain.Head, ParamsHash: x.Chain.Head})
			require.NoError(t, err)
			x.Signed = signed
		}, isRefused(approval.CodeMalformed)},
		"the head of another thread": {func(_ *testing.T, x *approval.Export) {
			x.Signed = signedBy(ours, approval.Head{Thread: "t-2", Chain: x.Chain})
		}, isBroken},
		"an older head": {func(_ *testing.T, x *approval.Export) {
			x.Signed = signedBy(ours, approval.Head{Thread: "t-1", Chain: approval.Chain{Count: 3, Head: x.Entries[2].Hash}})
		}, isBroken},
		"a head with a claim more": {func(t *testing.T, x *approval.Export) {
			x.Signed = forged(t, x.Signed, func(c map[string]any) { c["note"] = "fine" })
		}, isRefused(approval.CodeMalformed)},
		"no head":               {func(_ *testing.T, x *approval.Export) { x.Signed = "" }, isUnsigned},
		"no signature":          {func(_ *testing.T, x *approval.Export) { x.Signed = strings.Join(parts(x.Signed)[:2], ".") + "." }, isRefused(approval.CodeSignature)},
		"a head of nonsense":    {func(_ *testing.T, x *approval.Export) { x.Signed = "signed by the boss" }, isRefused(approval.CodeMalformed)},
		"a head without an end": {func(_ *testing.T, x *approval.Export) { x.Signed = strings.Repeat("x", 1<<20) }, isRefused(approval.CodeMalformed)},
	} {
		t.Run(name, func(t *testing.T) {
			x := exported(t, ours)
			_, err := x.Verify(keys, 1)
			require.NoError(t, err)
			c.forge(t, &x)
			_, err = x.Verify(keys, 1)
			c.want(t, err)
		})
	}
}

// TestExportOfWhatIsLeft: earlier runs were gone when it was exported, and who verifies says so.
func TestExportOfWhatIsLeft(t *testing.T) {
	s := workerKey(t, "w-1")
	keys, err := token.New(s.Key())
	require.NoError(t, err)
	x := exported(t, s)
	x.Entries = x.Entries[2:]
	_, err = x.Verify(keys, 1)
	require.ErrorContains(t, err, "begins at 3")
	_, err = x.Verify(keys, 3)
	require.NoError(t, err)
	_, err = x.Verify(keys, 2)
	require.Error(t, err)
}

// TestHeadKeys: a worker's key signs heads and nothing else, and nobody else's does; a retired one proves what it signed
// while it was active.
func TestHeadKeys(t *testing.T) {
	s := workerKey(t, "w-1")
	_, err := s.Sign(approval.Claims{Thread: "t-1", Question: "q", Approver: "ann", Digest: "d", ParamsHash: "p"})
	require.ErrorContains(t, err, "signs audits and nothing else")
	person := signer(t, "ann")
	_, err = person.SignHead(approval.Head{Thread: "t-1"})
	require.ErrorContains(t, err, "header Worker")

	x := exported(t, s)
	at := time.Now()
	key := s.Key()
	for _, c := range []struct {
		from, until time.Time
		code        approval.Code
	}{
		{until: at.Add(time.Hour)},
		{until: at.Add(-time.Hour), code: approval.CodeRetiredKey},
		{from: at.Add(time.Hour), code: approval.CodeSignature},
	} {
		key.NotBefore, key.RetiredAt = c.from, c.until
		keys, err := token.New(key)
		require.NoError(t, err)
		keys.Now = func() time.Time { return at.AddDate(10, 0, 0) }
		_, err = x.Verify(keys, 1)
		if c.code == "" {
			require.NoError(t, err)
			continue
		}
		var bad *approval.TokenError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, c.code, bad.Code)
	}
}

// TestExportIsReadStrictly: what no hash covers is not read.
func TestExportIsReadStrictly(t *testing.T) {
	x := exported(t, workerKey(t, "w-1"))
	var file bytes.Buffer
	require.NoError(t, approval.WriteExport(&file, x))
	lines := strings.SplitAfter(strings.TrimSpace(file.String())+"\n", "\n")
	for name, text := range map[string]string{
		"a field that no entry has": strings.Replace(file.String(), `{"seq":1,`, `{"seq":1,"approved_by":"the boss",`, 1),
		"an entry behind the head":  file.String() + lines[0],
		"two heads":                 file.String() + lines[4],
		"two values on a line":      strings.Replace(file.String(), "}\n", "} {}\n", 1),
		"no JSON":                   "it was all fine\n",
	} {
		_, err := approval.ReadExport(strings.NewReader(text))
		require.Error(t, err, name)
		require.ErrorContains(t, err, "line ", name)
	}
}
