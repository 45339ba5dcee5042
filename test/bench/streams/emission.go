package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"

	"superstep.dev/test/bench/testbed"
)

// ranks are the percentiles that are shown.
var ranks = []float64{50, 95}

// sides are the percentiles of two ways that take turns, round by round.
type sides map[float64]*[2]testbed.Sample

// take adds how late the ticks of one side came in a round. The first round counts for nobody.
func (s sides) take(round, side int, late []float64) {
	for _, rank := range ranks {
		if s[rank] == nil {
			s[rank] = &[2]testbed.Sample{}
		}
		if round > 0 {
			s[rank][side] = append(s[rank][side], testbed.Sample(late).Percentile(rank))
		}
	}
}

// show shows the second side beside the first.
func (s sides) show(t *table, name, base string, bars ...string) {
	for n, rank := range ranks {
		of := fmt.Sprintf("%s p%.0f", name, rank)
		t.figure(of, "ms", s[rank][1], "")
		t.figure(of+", "+base, "ms", s[rank][0], "")
		t.figure(of+" to "+base, "x", s[rank][1].Over(s[rank][0]), bars[n])
	}
}

// emission measures from a node's emission to the read of its event, against a bare publish, subscribe and write over the same server;
// and how late the first event of a run comes that is asked for and streamed with one request.
func (s *stage) emission(ctx context.Context, t *table) (err error) {
	p, err := s.pair(ctx, false)
	if err != nil {
		return err
	}
	bare, err := s.bare(ctx, p)
	if err != nil {
		return err
	}
	steady := pace{Steps: 1, Count: 200, Every: 10, Size: 100}
	at, firsts := sides{}, [2]testbed.Sample{}
	for round := range s.options.rounds + 1 {
		late, err := streamed(ctx, bare, steady, steady.all())
		if err != nil {
			return err
		}
		at.take(round, 0, late)
		if late, err = s.together(ctx, p, steady, 1, false); err != nil {
			return err
		}
		at.take(round, 1, late)
		for side, durability := range []string{"async", "sync"} {
			run := clockRun(steady)
			run["durability"] = durability
			if late, err = streamed(ctx, p.base+"/runs/stream", run, steady.all()); err != nil {
				return err
			}
			if round > 0 {
				firsts[side] = append(firsts[side], late[0])
			}
		}
	}
	at.show(t, "emission", "bare", "3 x", "")
	t.figure("first emission of a run, async", "ms", firsts[0], "")
	t.figure("first emission of a run, sync", "ms", firsts[1], "")
	return p.stop()
}

// streamed asks for a stream, and reads its ticks.
func streamed(ctx context.Context, url string, body any, count int) ([]float64, error) {
	resp, err := send(ctx, client, http.MethodPost, url, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	h, err := ticks(resp.Body, count, func() {})
	return h.late, err
}

// quickReaders are how many read the stream that somebody else does not.
const quickReaders = 4

// slowReader measures the same for readers of one run while somebody has the stream open and reads nothing, against without.
func (s *stage) slowReader(ctx context.Context, t *table) error {
	p, err := s.pair(ctx, false)
	if err != nil {
		return err
	}
	heavy := pace{Steps: 10, Count: 40, Every: 10, Size: 16 << 10}
	at := sides{}
	for round := range s.options.rounds + 1 {
		for side, slow := range []bool{false, true} {
			late, err := s.together(ctx, p, heavy, quickReaders, slow)
			if err != nil {
				return err
			}
			at.take(round, side, late)
		}
	}
	at.show(t, "slow reader", "without", "about 1 x", "about 1 x")
	return p.stop()
}

// together has readers read one run; it returns how late they read all its ticks.
func (s *stage) together(ctx context.Context, p *pair, of pace, count int, slow bool) ([]float64, error) {
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
	all, err := readAll(ctx, slices.Repeat([]string{url}, count), of.all(), open)
	if err == nil && all.failed > 0 {
		err = fmt.Errorf("%d of %d readers failed", all.failed, count)
	}
	return all.late, err
}

// narrow is a client whose connections hold little of what it does not read.
var narrow = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
		err = tcp.SetReadBuffer(16 << 10)
	}
	return conn, err
}}}
