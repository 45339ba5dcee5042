package e2e_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/approval"
	"superstep.dev/approval/webhook"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// pager is a receiver of notices that refuses them until it is open.
type pager struct {
	secret string
	mu     sync.Mutex
	open   bool
	tried  int
	told   []approval.Notice
}

// ServeHTTP implements http.Handler.
func (p *pager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	n, err := webhook.Verify(p.secret, r.Header, body)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tried++
	switch {
	case err != nil:
		w.WriteHeader(http.StatusUnauthorized)
	case !p.open:
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		p.told = append(p.told, n)
	}
}

func (p *pager) set(open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = open
}

func (p *pager) attempts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tried
}

// ids are those of the notices of a kind, each once.
func (p *pager) ids(kind approval.Kind) (ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.told {
		if n.Kind == kind && !slices.Contains(ids, n.ID) {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

// TestNoticesOutliveTheirWorker: people hear of a question, and of its answer, though the worker that was to tell them was
// killed each time.
func TestNoticesOutliveTheirWorker(t *testing.T) {
	r := newRig(t)
	r.payments()
	key := r.approvalFiles()
	calls := &pager{secret: "whsec_" + base64.StdEncoding.EncodeToString([]byte("an e2e secret of 24 bytes"))}
	web := httptest.NewServer(calls)
	t.Cleanup(web.Close)
	works := func(name string) interface{ Kill() error } {
		return r.worksApproved(name, []string{"SUPERSTEP_NOTIFY_SECRET=" + calls.secret}, "--notify-url", web.URL)
	}
	first := works("first")
	threadID := testserver.Queue(t)
	q := r.wants(threadID, "o-1042")
	r.until("the first worker tries", func() bool { return calls.attempts() > 0 })
	require.NoError(t, first.Kill())
	calls.set(true)
	second := works("second")
	r.until("the question is told", func() bool { return len(calls.ids(approval.KindAsked)) == 1 })

	calls.set(false)
	tried := calls.attempts()
	r.exits(0, r.superstep("approve", threadID, q.ID, "--by", "ann", "--key", key))
	r.wait(threadID, thread.StatusFinished)
	r.until("the second worker tries", func() bool { return calls.attempts() > tried })
	require.NoError(t, second.Kill())
	calls.set(true)
	works("third")
	r.until("the answer is told", func() bool { return len(calls.ids(approval.KindAnswered)) == 1 })
	require.Len(t, calls.ids(approval.KindAsked), 1)
	r.refundedOnce("o-1042", 25_000)
}
