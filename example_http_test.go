package superstep_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"

	"go.temporal.io/sdk/client"
	"superstep.dev/thread"
	"superstep.dev/thread/live"

	"superstep.dev"
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
		thread.ErrNoWorker: http.StatusServiceUnavailable, thread.ErrNoServer: http.StatusServiceUnavailable,
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
	c, err := client.Dial(client.Options{HostPort: "127.0.0.1:7233"})
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
