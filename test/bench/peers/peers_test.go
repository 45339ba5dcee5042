package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/xml"
	"errors"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"
)

func TestCostOf(t *testing.T) {
	before := reading{client: map[string]int{"Start": 4, "Poll": 9}, clientCPU: 10, serverCPU: 100, commits: 7, stored: 9000, history: history{"r", 10, 1000}}
	after := reading{client: map[string]int{"Start": 6, "Poll": 9}, clientCPU: 16, serverCPU: 120, commits: 13, stored: math.NaN(), history: history{"r", 22, 3000}}
	c := costOf(before, after, 2)
	require.Equal(t, map[string]float64{"Start": 1}, c.ClientCalls)
	require.InDelta(t, 13.0, c.cpu(), 0)
	require.InDelta(t, 3.0, *c.Commits, 0)
	require.Nil(t, c.Stored, "nobody counted")
	require.InDelta(t, 6.0, c.Events, 0, "one run took both turns")
	after.history.run = "another"
	require.InDelta(t, 22.0, costOf(before, after, 2).Events, 0, "each turn has a run of its own")
}

// entrants are ways with rounds of these milliseconds.
func entrants(t *testing.T) []*entrant {
	t.Helper()
	rounds := func(ms ...float64) (out []round) {
		for _, m := range ms {
			out = append(out, round{m, cost{ClientCPU: m / 2}})
		}
		return out
	}
	named := func(kind string) func(*workload) string { return func(*workload) string { return kind } }
	return []*entrant{
		{way: &way{name: "superstep sqlite async client", mode: "async", floor: named("floor sqlite local"), langgraph: named("async")}, rounds: rounds(20, 60, 30)},
		{way: &way{name: "floor sqlite local", floor: noWay, langgraph: noWay}, rounds: rounds(10, 20, 10)},
		{way: &way{name: "langgraph postgres async", mode: "async", floor: noWay, langgraph: noWay}, rounds: rounds(40, 40, 40)},
		{way: &way{name: "superstep sqlite exit client", floor: noWay, langgraph: noWay}, failed: errors.New("no worker")},
	}
}

func TestRatiosArePaired(t *testing.T) {
	rows := rowsOf(&workload{name: "chain"}, entrants(t))
	require.Len(t, rows, 4)
	require.Equal(t, &ratio{To: "floor sqlite local", Median: 3, Low: 2, High: 3}, rows[0].Floor)
	require.Equal(t, &ratio{To: "langgraph postgres async", Median: 0.75, Low: 0.5, High: 1.5}, rows[0].Postgres)
	require.Nil(t, rows[0].SQLite)
	require.Nil(t, rows[1].Floor)
	require.InDelta(t, 30.0, rows[0].Milliseconds, 0)
}

func TestTable(t *testing.T) {
	w := &workload{name: "chain", about: "steps"}
	var out bytes.Buffer
	require.NoError(t, printTable(&out, w, rowsOf(w, entrants(t))))
	require.Contains(t, out.String(), "chain: steps\n")
	require.Regexp(t, `superstep sqlite async client +30\.0 +3\.00 \[2\.00-3\.00\] +3\.00 \[2\.00-3\.00\] +0\.75 \[0\.50-1\.50\] +15\.0\n`, out.String())
	require.Contains(t, out.String(), "superstep sqlite exit client failed after 0 rounds: no worker")
	require.NotContains(t, out.String(), "+SQLite", "a column that nobody has")
}

func TestNamesAreOfOneAnother(t *testing.T) {
	o, err := parse([]string{"-list", "-store", "sqlite,postgres", "-turns", "1,2000"}, t.Output())
	require.NoError(t, err)
	f := &field{options: o}
	require.NoError(t, f.gather(t.Context()))
	compared := 0
	for _, w := range f.workloads() {
		names := map[string]bool{}
		for _, one := range f.chosen(w) {
			require.False(t, names[one.name], "%s/%s is there twice", w.name, one.name)
			names[one.name] = true
		}
		for _, one := range f.chosen(w) {
			if base := one.floor(w); base != "" {
				compared++
				require.True(t, names[base], "%s/%s is compared with %q", w.name, one.name, base)
			}
			if kind := one.langgraph(w); kind != "" {
				require.True(t, names["langgraph postgres "+kind], "%s/%s is compared with LangGraph's %q", w.name, one.name, kind)
			}
		}
	}
	require.Greater(t, compared, 100)
}

func TestSQLiteTellsOfTransactions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "some.db")
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	do := func(text string, args ...any) {
		_, err := db.Exec(text, args...)
		require.NoError(t, err)
	}
	do("PRAGMA journal_mode=WAL")
	do("CREATE TABLE texts (text)")
	transactions, size := sqliteFile(path).read()
	for n := range 10 {
		do("INSERT INTO texts VALUES (?)", text("t", n))
	}
	do("SELECT 1")
	after, grown := sqliteFile(path).read()
	require.InDelta(t, 10, after-transactions, 0)
	require.InDelta(t, 10*textBytes, grown-size, 2*4096)
	none, _ := sqliteFile(path + "-no").read()
	require.True(t, math.IsNaN(none))
}

// TestConversationsGrowUnmeasured follows the turns of what is prepared and of what is measured.
func TestConversationsGrowUnmeasured(t *testing.T) {
	var turns []int
	one := &way{source: &source{}, do: func(_ context.Context, _ *workload, _ string, turn int) (time.Duration, error) {
		turns = append(turns, turn)
		return time.Duration(turn) * time.Second, nil
	}}
	e := &entrant{way: one, thread: "t"}
	w := &workload{graph: talkGraph, turn: 3, ops: 2}
	require.NoError(t, e.prepare(t.Context(), w))
	r, err := e.round(t.Context(), w)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 3, 4, 5}, turns)
	require.InDelta(t, 4500, r.Milliseconds, 0)

	turns = nil
	one.grow = func(_ context.Context, _ *workload, _ string, n int) error { turns = append(turns, -n); return nil }
	require.NoError(t, (&entrant{way: one}).prepare(t.Context(), w))
	require.Equal(t, []int{-2, 3}, turns, "two at once")

	turns = nil
	many := &workload{name: "bytes", graph: talkGraph, turns: 3, ops: 1}
	e = &entrant{way: one}
	require.NoError(t, e.prepare(t.Context(), many))
	r, err = e.round(t.Context(), many)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 3}, turns)
	require.InDelta(t, 2000, r.Milliseconds, 0, "of a turn")
}

func TestOnlyDoneWhenNamed(t *testing.T) {
	names := func(args ...string) (out []string) {
		o, err := parse(append(args, "-list"), t.Output())
		require.NoError(t, err)
		f := &field{options: o}
		require.NoError(t, f.gather(t.Context()))
		f.list = false
		for _, w := range f.workloads() {
			if len(f.chosen(w)) > 0 {
				out = append(out, w.name)
			}
		}
		return out
	}
	require.NotContains(t, names(), "bytes-of-turns")
	require.NotContains(t, names("-run", "/superstep"), "bytes-of-turns")
	require.Equal(t, []string{"bytes-of-turns"}, names("-run", "^bytes-of-turns/"))
}

func TestTextsDiffer(t *testing.T) {
	require.Len(t, text("t", 7), textBytes)
	require.NotEqual(t, text("t", 7), text("t", 8))
	require.NotEqual(t, text("t", 7), text("u", 7))
	require.Len(t, texts("t", 3, callTexts), callTexts)
}

func TestFigureIsOneOfThoseThatWereMeasured(t *testing.T) {
	svg := draw(report{Rows: rowsOf(&workload{name: "chain <20>"}, entrants(t))})
	var parsed struct {
		Circles []struct {
			X     float64 `xml:"cx,attr"`
			Title string  `xml:"title"`
		} `xml:"circle"`
	}
	require.NoError(t, xml.Unmarshal(svg, &parsed))
	require.Len(t, parsed.Circles, 4, "two of the legend, and two of the only row that is compared")
	lang, floor := parsed.Circles[2], parsed.Circles[3]
	require.Equal(t, "superstep sqlite async client: 0.75 [0.50-1.50] of langgraph postgres async", lang.Title)
	// The scale goes from 0.1 to 10.
	require.InDelta(t, figureLeft+(math.Log10(0.75)+1)/2*(figureRight-figureLeft), lang.X, 0.1)
	require.Greater(t, floor.X, lang.X)
	require.Contains(t, string(svg), "chain &lt;20&gt;")
}

func TestHelp(t *testing.T) {
	var out, help bytes.Buffer
	require.Zero(t, execute([]string{"--help"}, &out, &help))
	require.Contains(t, help.String(), "langgraph-checkpoint-postgres")
	require.Equal(t, exitBroken, execute([]string{"-o", "xml"}, &out, &help))
	require.Contains(t, help.String(), "-o of table or json")
}
