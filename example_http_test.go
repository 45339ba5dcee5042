package superstep_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/thread"
	"superstep.dev/thread/live"
)

// refundsAPI is the threads of a graph, over HTTP: one program for a web server and its worker.
type refundsAPI struct {
	graph   *superstep.Graph[refundState]
	runtime superstep.Runtime
}

type refundState struct {
	Order  superstep.Value[string] `json:"order"`
	Result superstep.Value[string] `json:"result"`
}

func refundGraph() *superstep.Graph[refundState] {
	g := superstep.NewStateGraph[refundState]("refund")
	g.AddNode("ask", func(ctx context.Context, s refundState) (refundState, error) {
		yes, err := superstep.Interrupt[bool](ctx, "Refund "+s.Order.Get()+"?")
		if err != nil {
			return s, err
		}
		s.Result.Set(map[bool]string{true: "refunded", false: "declined"}[yes])
		return s, superstep.Emit(ctx, "decided")
	})
	g.AddEdge(superstep.Start, "ask")
	return g.MustCompile()
}

// Handler serves a thread: start it, stream it as server-sent events, answer what it asks. An answer returns when it is
// taken; what follows comes on the stream. A browser that reconnects sends the id of the last event that it saw, and goes
// on behind it.
func (r *refundsAPI) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /refunds/{id}", func(w http.ResponseWriter, req *http.Request) {
		var input struct {
			Order string `json:"order"`
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, req.Body, 1<<20)).Decode(&input); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		reply(w, nil, r.graph.Thread(r.runtime, req.PathValue("id")).Start(req.Context(), input))
	})
	mux.HandleFunc("GET /refunds/{id}/events", func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		th := r.graph.Thread(r.runtime, req.PathValue("id"))
		from := superstep.StreamFrom(req.Header.Get("Last-Event-ID"))
		for part, err := range th.Stream(req.Context(), thread.StreamUpdates, thread.StreamCustom, from) {
			if err != nil {
				fmt.Fprintf(w, "event: error\ndata: %q\n\n", err.Error())
				return
			}
			fmt.Fprintf(w, "id: %s\nevent: %s\ndata: %s\n\n", part.Offset, part.Mode, part.Data)
			_ = http.NewResponseController(w).Flush()
		}
	})
	mux.HandleFunc("POST /refunds/{id}/answers", func(w http.ResponseWriter, req *http.Request) {
		var answers map[string]any // by question
		if err := json.NewDecoder(http.MaxBytesReader(w, req.Body, 1<<20)).Decode(&answers); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		thread := r.graph.Thread(r.runtime, req.PathValue("id"))
		// Who sends the same request twice answers once.
		taken, err := thread.AnswerByID(req.Context(), answers, superstep.WithRequestID(req.Header.Get("Idempotency-Key")))
		reply(w, taken, err)
	})
	return mux
}

// reply writes what a call returned, with the HTTP status of its error.
func reply(w http.ResponseWriter, body any, err error) {
	status := http.StatusOK
	for kind, code := range map[error]int{
		thread.ErrBadInput: http.StatusBadRequest, thread.ErrNotFound: http.StatusNotFound,
		thread.ErrAnswerRefused: http.StatusConflict, thread.ErrRunning: http.StatusConflict,
		thread.ErrNoWorker: http.StatusServiceUnavailable, thread.ErrBusy: http.StatusServiceUnavailable, thread.ErrNoServer: http.StatusServiceUnavailable,
	} {
		if errors.Is(err, kind) {
			status = code
		}
	}
	if err != nil {
		status, body = max(status, http.StatusBadRequest), map[string]string{"error": err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// A program with a worker and an HTTP server: NewWorker runs the graph's nodes, NewClient is the runtime of its threads. They
// may as well be two programs. The transport brings what nodes emit to the streams at once; without it that comes with the
// nodes' results.
func Example_http() {
	c, err := client.Dial(superstep.Watched(client.Options{HostPort: "127.0.0.1:7233"}))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	graph, live := refundGraph(), &live.Local{}
	worker, err := superstep.NewWorker(c, superstep.WorkerConfig{Graphs: []superstep.Runnable{graph}, Transport: live})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { log.Println("the worker has ended:", worker.Run(ctx)) }()
	runtime, err := superstep.NewClient(c, superstep.ClientConfig{Transport: live})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", (&refundsAPI{graph, runtime}).Handler()))
}

// TestHTTP drives the handler of Example_http as a browser does, on every runtime.
func TestHTTP(t *testing.T) {
	g := refundGraph()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		web := httptest.NewServer((&refundsAPI{g, rt}).Handler())
		t.Cleanup(web.Close)
		url := web.URL + "/refunds/" + graphtest.ThreadID(t)
		call := func(method, url, body string, header ...string) (int, string) {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
			require.NoError(t, err)
			if len(header) > 0 {
				req.Header.Set(header[0], header[1])
			}
			response, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			return response.StatusCode, string(text)
		}
		status, _ := call(http.MethodGet, url+"/events", "")
		require.Equal(t, http.StatusOK, status)
		status, body := call(http.MethodPut, url, `{"order":"o-7"}`)
		require.Equal(t, http.StatusOK, status, body)
		_, events := call(http.MethodGet, url+"/events", "")
		id, question := "", ""
		for lines := bufio.NewScanner(strings.NewReader(events)); lines.Scan(); {
			if value, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				id = value
			}
			if at := strings.Index(lines.Text(), "q-"); at >= 0 {
				question = lines.Text()[at : at+len("q-")+8]
			}
		}
		require.NotEmpty(t, question, events)
		for _, repeated := range []bool{false, true} {
			status, body = call(http.MethodPost, url+"/answers", `{"`+question+`":true}`, "Idempotency-Key", "k-1")
			require.Equal(t, http.StatusOK, status, body)
			assert.Equal(t, repeated, strings.Contains(body, `"repeated":true`), body)
			_, events = call(http.MethodGet, url+"/events", "", "Last-Event-ID", id)
			assert.Equal(t, 2, strings.Count(events, "id: "), events)
			assert.Contains(t, events, "event: custom\ndata: \"decided\"")
			assert.Contains(t, events, `data: {"ask":{"result":"refunded"}}`)
		}
		status, _ = call(http.MethodPost, url+"/answers", `{"`+question+`":false}`)
		assert.Equal(t, http.StatusConflict, status)
	}, g)
}
