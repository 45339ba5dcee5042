package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"

	"golang.org/x/sync/errgroup"

	"superstep.dev/test/bench/testbed"
)

// emission measures from a node's emission to the read of its event, against a bare publish, subscribe and write over the same server.
func (s *stage) emission(ctx context.Context, t *table) (err error) {
	p, err := s.pair(ctx, false)
	if err != nil {
		return err
	}
	bare, err := s.bare(ctx, p)
	if err != nil {
		return err
	}
	steady := pace{Count: 200, Every: 10, Size: 100}
	ways := []struct {
		url  string
		body any
	}{{bare, steady}, {p.base + "/runs/stream", clockRun(steady)}}
	at := map[float64][2]testbed.Sample{}
	for round := range s.options.rounds + 1 { // the first one counts for nobody
		for n, way := range ways {
			late, err := streamed(ctx, way.url, way.body, steady.Count)
			if err != nil {
				return err
			}
			for _, rank := range []float64{50, 95} {
				if round > 0 {
					both := at[rank]
					both[n] = append(both[n], testbed.Sample(late).Percentile(rank))
					at[rank] = both
				}
			}
		}
	}
	t.figure("emission p50", "ms", at[50][1], "")
	t.figure("emission p95", "ms", at[95][1], "")
	t.figure("emission p50, bare", "ms", at[50][0], "")
	t.figure("emission p95, bare", "ms", at[95][0], "")
	t.figure("emission p50 to bare", "x", at[50][1].Over(at[50][0]), "3 x")
	t.figure("emission p95 to bare", "x", at[95][1].Over(at[95][0]), "")
	return p.stop()
}

// streamed asks for a stream, and reads its ticks.
func streamed(ctx context.Context, url string, body any, count int) ([]float64, error) {
	resp, err := send(ctx, client, http.MethodPost, url, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return ticks(resp.Body, count)
}

// quickReaders are how many read the stream that somebody else does not.
const quickReaders = 4

// slowReader measures the same for readers of one run while somebody has the stream open and reads nothing, against without.
func (s *stage) slowReader(ctx context.Context, t *table) error {
	p, err := s.pair(ctx, false)
	if err != nil {
		return err
	}
	heavy := pace{Count: 300, Every: 10, Size: 16 << 10}
	at := map[float64][2]testbed.Sample{}
	for round := range s.options.rounds + 1 {
		for n, slow := range []bool{false, true} {
			late, err := s.together(ctx, p, heavy, slow)
			if err != nil {
				return err
			}
			for _, rank := range []float64{50, 95} {
				if round > 0 {
					both := at[rank]
					both[n] = append(both[n], testbed.Sample(late).Percentile(rank))
					at[rank] = both
				}
			}
		}
	}
	for rank, name := range map[float64]string{50: "slow reader p50", 95: "slow reader p95"} {
		t.figure(name, "ms", at[rank][1], "")
		t.figure(name+", without", "ms", at[rank][0], "")
		t.figure(name+" to without", "x", at[rank][1].Over(at[rank][0]), "about 1 x")
	}
	return p.stop()
}

// together has readers read one run; it returns how late they read all its ticks.
func (s *stage) together(ctx context.Context, p *pair, of pace, slow bool) ([]float64, error) {
	gate, open, err := s.gate()
	if err != nil {
		return nil, err
	}
	of.Gate = gate
	url, err := begin(ctx, p.base, of)
	if err != nil {
		return nil, err
	}
	if slow {
		resp, err := send(ctx, narrow, http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
	}
	readers, err := openAll(ctx, slices.Repeat([]string{url}, quickReaders))
	if err != nil {
		return nil, err
	}
	late := make([][]float64, len(readers))
	var all errgroup.Group
	for n, r := range readers {
		all.Go(func() (err error) {
			defer r.Close()
			late[n], err = ticks(r, of.Count)
			return err
		})
	}
	if err := open(); err != nil {
		return nil, err
	}
	err = all.Wait()
	return slices.Concat(late...), err
}

// narrow is a client whose connections hold little of what it does not read.
var narrow = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
		err = tcp.SetReadBuffer(16 << 10)
	}
	return conn, err
}}}

// openAll opens streams at once, and returns them when all are open.
func openAll(ctx context.Context, urls []string) ([]io.ReadCloser, error) {
	out := make([]io.ReadCloser, len(urls))
	var all errgroup.Group
	for n, url := range urls {
		all.Go(func() error {
			resp, err := send(ctx, client, http.MethodGet, url, nil)
			if err == nil {
				out[n] = resp.Body
			}
			return err
		})
	}
	return out, all.Wait()
}
