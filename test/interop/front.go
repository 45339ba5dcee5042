package main

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"superstep.dev/internal/testserver"
)

// front listens for the server and outlives it, as a load balancer does or a socket that the system holds: who connects while no server
// is there waits for the next one. What a server had begun to answer breaks off with it.
type front struct {
	// url is where clients go, behind where the server listens.
	url, behind string

	listener net.Listener
	ctx      context.Context
	end      context.CancelFunc
	open     sync.WaitGroup
}

func newFront() (*front, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &front{behind: testserver.FreeAddress(), listener: listener}
	f.url = "http://" + f.listener.Addr().String()
	f.ctx, f.end = context.WithCancel(context.Background())
	f.open.Go(f.accept)
	return f, nil
}

func (f *front) close() {
	f.end()
	_ = f.listener.Close()
	f.open.Wait()
}

func (f *front) accept() {
	for {
		from, err := f.listener.Accept()
		if err != nil {
			return // closed
		}
		f.open.Go(func() { f.pass(from) })
	}
}

// pass connects a client with the server, until either of them goes.
func (f *front) pass(from net.Conn) {
	defer func() { _ = from.Close() }()
	to, err := f.dial()
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	gone := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() { _, _ = io.Copy(way[0], way[1]); gone <- struct{}{} }() // it ends when either connection is closed
	}
	select {
	case <-gone:
	case <-f.ctx.Done():
	}
}

// dial waits until a server listens, two minutes at most.
func (f *front) dial() (net.Conn, error) {
	ctx, done := context.WithTimeout(f.ctx, 2*time.Minute)
	defer done()
	for {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", f.behind)
		if err == nil {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(50 * time.Millisecond): // a refused connection is the only word of a server that is not there
		}
	}
}
