package main

import (
	"context"
	"embed"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"golang.org/x/sync/errgroup"

	"superstep.dev/test/bench/testbed"
	"superstep.dev/test/processes"
)

//go:embed refund.py
var referenceGraph embed.FS

// The requests of one round: one after the other, and then so many at a time.
const (
	referenceCalls  = 10
	referenceAtOnce = 5
)

// reference measures a thread that is made, and a run on it that is waited for, against the reference server.
func (s *stage) reference(ctx context.Context, t *table) error {
	p, err := s.pair(ctx, true)
	if err != nil {
		return err
	}
	theirs, base, err := s.referenceServer(ctx)
	if err != nil {
		return err
	}
	var p50, rate [2]testbed.Sample
	for round := range s.options.rounds + 1 {
		for n, base := range []string{p.base, base} {
			took, each, err := refunds(ctx, base)
			if err != nil {
				return err
			}
			if round > 0 {
				p50[n], rate[n] = append(p50[n], took), append(rate[n], each)
			}
		}
	}
	t.figure("reference p50, superstep serve", "ms", p50[0], "")
	t.figure("reference p50, reference server", "ms", p50[1], "")
	t.figure("reference p50, ours to theirs", "x", p50[0].Over(p50[1]), "0.2 x")
	t.figure("reference requests, superstep serve", "/s", rate[0], "")
	t.figure("reference requests, reference server", "/s", rate[1], "")
	if err := theirs.Stop(); err != nil {
		return err
	}
	return p.stop()
}

// referenceServer starts the reference server with its in-memory runtime.
func (s *stage) referenceServer(ctx context.Context) (*processes.Process, string, error) {
	dir, err := os.MkdirTemp(s.Dir, "reference")
	if err != nil {
		return nil, "", err
	}
	graph, err := referenceGraph.ReadFile("refund.py")
	if err != nil {
		return nil, "", err
	}
	for name, text := range map[string][]byte{"refund.py": graph, "langgraph.json": []byte(`{"dependencies": ["."], "graphs": {"refund": "./refund.py:refund"}}`)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, "", err
		}
	}
	program, err := filepath.Abs(s.options.reference)
	if err != nil {
		return nil, "", err
	}
	port, err := testbed.FreePort()
	if err != nil {
		return nil, "", err
	}
	p, err := s.Processes.Start(ctx, processes.Command{Name: "reference", Path: program, Dir: dir, ReadyWithin: 2 * time.Minute,
		Args: []string{"dev", "--no-browser", "--no-reload", "--port", port, "--config", "langgraph.json"}, ReadyLine: regexp.MustCompile(`Starting \d+ background workers`),
		Env: append(os.Environ(), "LANGSMITH_TRACING=false", "LANGCHAIN_TRACING_V2=false", "LANGGRAPH_CLI_NO_ANALYTICS=1", "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))})
	return p, "http://127.0.0.1:" + port, err
}

// refunds does one round; it returns the median time of a call, in milliseconds, and how many are done a second.
func refunds(ctx context.Context, base string) (p50, rate float64, err error) {
	var took testbed.Sample
	for range referenceCalls {
		begun := time.Now()
		if err := refund(ctx, base); err != nil {
			return 0, 0, err
		}
		took = append(took, testbed.Milliseconds(time.Since(begun)))
	}
	var all errgroup.Group
	all.SetLimit(referenceAtOnce)
	begun := time.Now()
	for range referenceCalls {
		all.Go(func() error { return refund(ctx, base) })
	}
	err = all.Wait()
	return took.Median(), referenceCalls / time.Since(begun).Seconds(), err
}

// refund makes a thread, and waits for a run on it.
func refund(ctx context.Context, base string) error {
	id, err := thread(ctx, base)
	if err != nil {
		return err
	}
	var values struct {
		Log []string `json:"log"`
	}
	err = ask(ctx, http.MethodPost, base+"/threads/"+id+"/runs/wait",
		object{"assistant_id": "refund", "input": object{"order_id": "o-1"}, "durability": "async"}, &values)
	if err == nil && len(values.Log) != 3 {
		err = fmt.Errorf("the refund came to %v", values.Log)
	}
	return err
}
