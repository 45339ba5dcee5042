package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"

	natsgo "github.com/nats-io/nats.go"
)

// The subjects of the bare way: where a pace is asked for, and where its ticks come.
const (
	bareAsks  = "bench.bare.asks"
	bareTicks = "bench.bare.ticks."
)

// publish is the process that emits: it publishes ticks when they are asked for, until it is stopped.
func publish(ctx context.Context, url string) error {
	conn, err := natsgo.Connect(url)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Subscribe(bareAsks, func(m *natsgo.Msg) {
		var p pace
		if json.Unmarshal(m.Data, &p) != nil {
			return // nobody gets anything, and says so
		}
		_ = p.ticks(ctx, 0, func(t tick) error { // it is asked for again in the next round
			text, err := json.Marshal(t)
			if err != nil {
				return err
			}
			return conn.Publish(m.Reply, text)
		})
	})
	if err == nil {
		err = conn.Flush()
	}
	if err != nil {
		return err
	}
	fmt.Println("ready at", url)
	<-ctx.Done()
	return nil
}

// forward is the process that serves: each request gets the ticks of a pace as server-sent events.
func forward(ctx context.Context, url string) error {
	conn, err := natsgo.Connect(url)
	if err != nil {
		return err
	}
	defer conn.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := forwarded(conn, w, r); err != nil && r.Context().Err() == nil {
			panic(http.ErrAbortHandler) // the reader misses events, and says so
		}
	})}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	fmt.Printf("ready at http://%s\n", listener.Addr())
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

func forwarded(conn *natsgo.Conn, w http.ResponseWriter, r *http.Request) error {
	var p pace
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		return err
	}
	subject := bareTicks + natsgo.NewInbox()
	comes, err := conn.SubscribeSync(subject)
	if err != nil {
		return err
	}
	defer func() { _ = comes.Unsubscribe() }() // the connection goes with the process
	ask, err := json.Marshal(p)
	if err == nil {
		err = conn.PublishRequest(bareAsks, subject, ask)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for range p.all() {
		m, err := comes.NextMsgWithContext(r.Context())
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "event: custom\ndata: %s\n\n", m.Data); err != nil {
			return err
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return err
		}
	}
	return nil
}
