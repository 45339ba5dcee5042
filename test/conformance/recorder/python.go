package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"superstep.dev/test/conformance/trace"
)

//go:embed record.py
var program string

// request is a case that LangGraph is to answer.
type request struct {
	Case  json.RawMessage `json:"case"`
	Drawn bool            `json:"drawn,omitempty"`
}

// recording is what LangGraph answered to a case.
type recording struct {
	Expect []any
	// Actions are those that were done; of a drawn case they are not quite those that were asked for.
	Actions []any
}

// reply is a line of the program's output.
type reply struct {
	Packages map[string]string `json:"packages"`
	Expect   json.RawMessage   `json:"expect"`
	Actions  json.RawMessage   `json:"actions"`
	Failure  string            `json:"failure"`
}

// answerer is a process that asks LangGraph. It does one case at a time, and is started again when it is lost.
type answerer struct {
	python string
	limit  time.Duration // for a case

	process  *exec.Cmd
	input    io.WriteCloser
	output   *bufio.Reader
	errors   lastBytes
	packages map[string]string
}

// start starts the process and waits until LangGraph has been loaded.
func (a *answerer) start() error {
	a.process = exec.Command(a.python, "-c", program)
	a.errors = lastBytes{}
	a.process.Stderr = &a.errors
	var err error
	if a.input, err = a.process.StdinPipe(); err != nil {
		return fmt.Errorf("starting LangGraph: %w", err)
	}
	output, err := a.process.StdoutPipe()
	if err != nil {
		return fmt.Errorf("starting LangGraph: %w", err)
	}
	a.output = bufio.NewReader(output)
	if err := a.process.Start(); err != nil {
		a.process = nil
		return fmt.Errorf("starting LangGraph: %w", err)
	}
	hello, err := a.read()
	if err != nil {
		return err
	}
	a.packages = hello.Packages
	return nil
}

// stop ends the process, if there is one.
func (a *answerer) stop() {
	if a.process == nil {
		return
	}
	_ = a.input.Close()
	_ = a.process.Process.Kill()
	_ = a.process.Wait() // it was killed: that is no news
	a.process = nil
}

// read reads one reply. A process that ended is an error with the last lines that it printed.
func (a *answerer) read() (*reply, error) {
	line, err := a.output.ReadBytes('\n')
	if err != nil {
		a.stop()
		return nil, fmt.Errorf("LangGraph's process ended: %w: %s", err, tail(a.errors.String()))
	}
	var r reply
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, fmt.Errorf("LangGraph's process said %s: %w", trace.Brief(string(line)), err)
	}
	return &r, nil
}

// ask records a case. A case that takes longer than the limit is an error, and its process is ended.
func (a *answerer) ask(ctx context.Context, q request) (*recording, error) {
	if a.process == nil {
		if err := a.start(); err != nil {
			return nil, err
		}
	}
	// The process is ended from the timer; the read below then ends with an error.
	ctx, cancel := context.WithTimeoutCause(ctx, a.limit, fmt.Errorf("the case took longer than %v", a.limit))
	defer cancel()
	process := a.process.Process
	defer context.AfterFunc(ctx, func() { _ = process.Kill() })()
	line, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("the case is no JSON: %w", err)
	}
	if _, err := a.input.Write(append(line, '\n')); err != nil {
		a.stop()
		return nil, errors.Join(fmt.Errorf("asking LangGraph: %w", err), context.Cause(ctx))
	}
	r, err := a.read()
	switch {
	case ctx.Err() != nil:
		a.stop()
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	case r.Failure != "":
		return nil, fmt.Errorf("the recorder failed: %s", tail(r.Failure))
	}
	return r.decode()
}

func (r *reply) decode() (*recording, error) {
	expect, err := trace.Decode(r.Expect)
	if err != nil {
		return nil, fmt.Errorf("LangGraph's answers: %w", err)
	}
	actions, err := trace.Decode(r.Actions)
	if err != nil {
		return nil, fmt.Errorf("the actions that were done: %w", err)
	}
	out := &recording{}
	var ok, done bool
	out.Expect, ok = expect.([]any)
	out.Actions, done = actions.([]any)
	if !ok || !done {
		return nil, errors.New("LangGraph's process did not answer with lists")
	}
	return out, nil
}

// lastBytes keeps the end of what is written to it.
type lastBytes struct {
	mu  sync.Mutex
	end bytes.Buffer
}

func (l *lastBytes) Write(p []byte) (int, error) {
	const most = 4096
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end.Write(p)
	if over := l.end.Len() - most; over > 0 {
		l.end.Next(over)
	}
	return len(p), nil
}

// String is what was written last.
func (l *lastBytes) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(l.end.String())
}

// pool are the processes that record cases at a time.
type pool struct {
	idle     chan *answerer
	packages map[string]string
}

// newPool starts the first process, which tells what answers, and makes place for the others.
func newPool(e *environment, size int, limit time.Duration) (*pool, error) {
	p := &pool{idle: make(chan *answerer, size)}
	for range size {
		p.idle <- &answerer{python: e.python(), limit: limit}
	}
	first := <-p.idle
	defer func() { p.idle <- first }()
	if err := first.start(); err != nil {
		return nil, err
	}
	if p.packages = first.packages; p.packages["langgraph"] != e.version {
		first.stop()
		return nil, fmt.Errorf("the environment %s holds langgraph %s, not %s: delete it, and it is made again", e.folder, p.packages["langgraph"], e.version)
	}
	return p, nil
}

// close ends all processes. None may be recording.
func (p *pool) close() {
	for range cap(p.idle) {
		(<-p.idle).stop()
	}
}

// record asks for a case. What LangGraph answers in only some of the recordings is not stable: then same is false.
func (p *pool) record(ctx context.Context, q request) (*recording, error) {
	a := <-p.idle
	defer func() { p.idle <- a }()
	return a.ask(ctx, q)
}

// each does n jobs, as many at a time as there are processes.
func (p *pool) each(ctx context.Context, n int, job func(i int)) {
	var all sync.WaitGroup
	next := make(chan int)
	for range min(cap(p.idle), n) {
		all.Go(func() {
			for i := range next {
				job(i)
			}
		})
	}
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
			n = i
		}
		if ctx.Err() != nil {
			break
		}
	}
	close(next)
	all.Wait()
}
