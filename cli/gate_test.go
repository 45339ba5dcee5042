package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"superstep.dev/approval"
	"superstep.dev/approval/token"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
)

const annMay = "people:\n  ann: {}\nrules:\n  - allow: all\n"

// keyPair writes a new key pair and returns its files.
func keyPair(t *testing.T) (private, public string) {
	t.Helper()
	dir := t.TempDir()
	private, public = filepath.Join(dir, "ann.key"), filepath.Join(dir, "ann.pem")
	key, pub, err := token.Generate(approval.Owner{Person: "ann"}, "ann-1")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(private, key, 0o600))
	require.NoError(t, os.WriteFile(public, pub, 0o644))
	return private, public
}

// TestTokensAreMade with the key of a file or of the environment, for the question as it is asked now.
func TestTokensAreMade(t *testing.T) {
	private, public := keyPair(t)
	keys, err := token.Open(public)
	require.NoError(t, err)
	text, err := os.ReadFile(private)
	require.NoError(t, err)
	const asked = `{"Question": {"view": {"thread": "r-7", "id": "q-41c9", "approval": {"tool": "pay", "params_hash": "sha256:5a", "digest": "sha256:77"}}},
		"Resume": {"view": {"accepted": true, "question": "q-41c9"}}}`
	for about, c := range map[string]struct {
		env  environment
		args []string
	}{
		"a file":             {nil, []string{"--key", private}},
		"a file of the env":  {environment{token.EnvSigningKey: private}, nil},
		"the env":            {environment{token.EnvSigningKey: string(text)}, nil},
		"a file comes first": {environment{token.EnvSigningKey: "/nowhere"}, []string{"--key", private}},
	} {
		t.Run(about, func(t *testing.T) {
			s := &script{}
			require.NoError(t, json.Unmarshal([]byte(asked), &s.replies))
			a, stdout, stderr := testApp(t, s, "")
			if c.env != nil {
				a.env = c.env
			}
			require.Equal(t, ExitOK, a.run(t.Context(), append([]string{"token", "r-7", "--for", "ann", "--ttl", "2m"}, c.args...)), stderr)
			claims, err := keys.Verify(string(bytes.TrimSpace(stdout.Bytes())))
			require.NoError(t, err)
			claims.ID = ""
			now := a.Now()
			require.Equal(t, now.Add(2*time.Minute).Unix(), claims.ExpiresAt.Unix())
			claims.IssuedAt, claims.ExpiresAt = time.Time{}, time.Time{}
			require.Equal(t, approval.Claims{Thread: "r-7", Question: "q-41c9", Approver: "ann", Digest: "sha256:77", ParamsHash: "sha256:5a",
				KeyID: "ann-1", Owner: approval.Owner{Person: "ann"}}, claims)
		})
	}
}

// TestSeveralAnswersTakeOneToken: a key or a token at hand proves who answers all of them.
func TestSeveralAnswersTakeOneToken(t *testing.T) {
	private, public := keyPair(t)
	keys, err := token.Open(public)
	require.NoError(t, err)
	for about, c := range map[string]struct {
		env  environment
		args []string
	}{
		"a key":            {nil, []string{"--key", private}},
		"a key of the env": {environment{token.EnvSigningKey: private}, nil},
		"a token":          {nil, []string{"--token", "TOKEN"}},
		"one of the env":   {environment{envToken: "TOKEN"}, nil},
	} {
		t.Run(about, func(t *testing.T) {
			s := &script{replies: map[string]reply{"Resume": {View: json.RawMessage(`{"accepted": true, "questions": ["q-41c9", "q-4777"]}`)}}}
			a, _, stderr := testApp(t, s, "")
			if c.env != nil {
				a.env = c.env
			}
			args := append([]string{"resume", "r-7", "--answers", `{"q-41c9":true,"q-4777":"checked"}`}, c.args...)
			require.Equal(t, ExitOK, a.run(t.Context(), args), stderr)
			require.Len(t, s.asked, 1)
			var sent thread.ResumeRequest
			require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(s.asked[0], "Resume ")), &sent))
			require.NoError(t, runtime.CheckAnswers(sent))
			require.Len(t, sent.Answers, 2)
			if sent.Token == "TOKEN" {
				return
			}
			claims, err := keys.Verify(sent.Token)
			require.NoError(t, err)
			want := approval.Control{Op: approval.OpResume}.Claims("r-7", "ann")
			require.Equal(t, []string{want.Thread, want.Question, want.Approver, want.Digest, want.ParamsHash},
				[]string{claims.Thread, claims.Question, claims.Approver, claims.Digest, claims.ParamsHash})
		})
	}
}

// TestKeysAreMade for a person, who signs for nobody else, and for an issuer; none is replaced.
func TestKeysAreMade(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) (int, string, string) {
		a, stdout, stderr := testApp(t, &script{}, "")
		code := a.run(t.Context(), append([]string{"signing-key", "--dir", dir}, args...))
		return code, stdout.String(), stderr.String()
	}
	code, out, problem := run("ann", "--id", "ann-1")
	require.Equal(t, ExitOK, code, problem)
	require.Contains(t, out, "key ann-1, which is ann's")
	code, _, problem = run("ann")
	require.Equal(t, ExitUsage, code)
	require.Contains(t, problem, "never replaced")
	code, out, problem = run("sso", "--issuer", "--for", "group:finance", "--for", "bob", "-o", "json")
	require.Equal(t, ExitOK, code, problem)
	require.Contains(t, out, "sso.pem")
	for _, args := range [][]string{{"bob", "--for", "ann"}, {"group:finance"}, {"../bob"}, {""}, {"bob", "--id", "a b"}, {"bob", "--dir", "/nowhere"}} {
		code, _, _ = run(args...)
		require.Equal(t, ExitUsage, code, args)
	}
	info, err := os.Stat(filepath.Join(dir, "ann.key"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	keys, err := token.Open(dir)
	require.NoError(t, err)
	signer, err := token.LoadSigner(filepath.Join(dir, "ann.key"))
	require.NoError(t, err)
	owner, err := keys.Owner("ann-1", time.Now())
	require.NoError(t, err)
	require.Equal(t, approval.Owner{Person: "ann"}, owner)
	require.Equal(t, owner, signer.Key().Owner)
	sso, err := token.LoadSigner(filepath.Join(dir, "sso.key"))
	require.NoError(t, err)
	require.Equal(t, approval.Owner{Issuer: "sso", For: []string{"group:finance", "bob"}}, sso.Key().Owner)

	// Who signs for somebody else is told before anything is sent.
	s := &script{}
	require.NoError(t, json.Unmarshal([]byte(`{"Question": {"view": {"thread": "r-7", "id": "q-41c9", "approval": {"tool": "pay", "params_hash": "sha256:5a", "digest": "sha256:77"}}},
		"Resume": {"view": {"accepted": true, "question": "q-41c9", "by": "ann"}}}`), &s.replies))
	a, _, stderr := testApp(t, s, "")
	require.Equal(t, ExitUsage, a.run(t.Context(), []string{"approve", "r-7", "--by", "bob", "--key", filepath.Join(dir, "ann.key")}))
	require.Contains(t, stderr.String(), "ann's")
	a, stdout, stderr := testApp(t, s, "")
	require.Equal(t, ExitOK, a.run(t.Context(), []string{"approve", "r-7", "--key", filepath.Join(dir, "ann.key")}), stderr)
	require.Contains(t, stdout.String(), "by ann")
}

// TestGateOfAWorker: what it reads, and what it refuses to begin with.
func TestGateOfAWorker(t *testing.T) {
	_, public := keyPair(t)
	book := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(book, []byte(annMay), 0o644))
	a, _, _ := testApp(t, &script{}, "")
	g, err := operating{a}.openGate(gateFlags{})
	require.NoError(t, err)
	require.Nil(t, g.approvals(), "closed")
	g, err = operating{a}.openGate(gateFlags{keys: public})
	require.NoError(t, err)
	require.Nil(t, g.approvals().Policy)
	a.env = environment{envRules: book}
	g, err = operating{a}.openGate(gateFlags{keys: public})
	require.NoError(t, err)
	require.NotNil(t, g.approvals().Directory)
	require.Equal(t, approval.NoLeeway, g.approvals().Leeway)
	g, err = operating{a}.openGate(gateFlags{keys: public, leeway: time.Second})
	require.NoError(t, err)
	require.Equal(t, time.Second, g.approvals().Leeway)
	for about, f := range map[string]gateFlags{
		"no such leeway": {keys: public, leeway: time.Hour}, "a negative one": {keys: public, leeway: -1},
		"rules alone": {rules: book}, "no such file": {keys: "/nowhere.pem"}, "no such rules": {keys: public, rules: "/nowhere.yaml"},
	} {
		_, err := operating{a}.openGate(f)
		_, code := exitOf(err)
		require.Equal(t, ExitUsage, code, about)
	}
}

// TestChangesOfTheGateAreLogged, the broken ones as errors.
func TestChangesOfTheGateAreLogged(t *testing.T) {
	_, public := keyPair(t)
	book := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(text string) {
		next := book + ".new"
		require.NoError(t, os.WriteFile(next, []byte(text), 0o644))
		require.NoError(t, os.Rename(next, book))
	}
	write(annMay)
	a, _, _ := testApp(t, &script{}, "")
	g, err := operating{a}.openGate(gateFlags{keys: public, rules: book})
	require.NoError(t, err)
	var log lockedBuffer
	logger := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&log), zap.InfoLevel))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); g.watch(ctx, logger) }()
	logged := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return log.contains(text) }, 2*time.Minute, 20*time.Millisecond, text)
	}
	logged("approvals are verified")
	write(annMay + "    when: params.amount > 1\n")
	logged("approval keys or rules have changed")
	write("nonsense: true\n")
	logged("nothing is approved until they can")
	cancel()
	<-ended
}

// lockedBuffer is written and read by two goroutines.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) contains(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Contains(b.text.Bytes(), []byte(text))
}
