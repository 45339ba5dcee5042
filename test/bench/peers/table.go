package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"superstep.dev/test/bench/testbed"
)

// ratio is a median of ratios, each of the same round, and their spread.
type ratio struct {
	To     string  `json:"to"`
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// row is what is known of one way to do a workload.
type row struct {
	Workload string  `json:"workload"`
	Way      string  `json:"way"`
	Mode     string  `json:"mode,omitempty"`
	Failed   string  `json:"failed,omitempty"`
	Rounds   []round `json:"rounds"`
	// Milliseconds and Cost are medians over the rounds; 0 when there were none.
	Milliseconds float64 `json:"ms"`
	Cost         cost    `json:"cost"`
	// The ratios are of the time to that of the hand-written program, of the processor time of all processes to its, and of
	// the time to LangGraph's in the same mode, with PostgreSQL and with SQLite; nil where there is nothing to compare with.
	Floor    *ratio `json:"floor,omitempty"`
	FloorCPU *ratio `json:"floor_cpu,omitempty"`
	Postgres *ratio `json:"langgraph_postgres,omitempty"`
	SQLite   *ratio `json:"langgraph_sqlite,omitempty"`
}

// report is what the JSON file holds.
type report struct {
	At       time.Time         `json:"at"`
	Versions map[string]string `json:"versions"`
	LeftOut  []string          `json:"left_out,omitempty"`
	Seed     uint64            `json:"seed"`
	Rows     []row             `json:"rows"`
}

// rowsOf makes rows of what a race came to.
func rowsOf(w *workload, all []*entrant) (rows []row) {
	byName := map[string]*entrant{}
	for _, e := range all {
		byName[e.name] = e
	}
	for _, e := range all {
		r := row{Workload: w.name, Way: e.name, Mode: e.mode, Rounds: e.rounds}
		if e.failed != nil {
			r.Failed = e.failed.Error()
		}
		elapsed := func(o round) float64 { return o.Milliseconds }
		if len(e.rounds) > 0 {
			r.Milliseconds, r.Cost = sampleOf(e.rounds, elapsed).Median(), usual(e.rounds)
		}
		r.Floor = compare(e, byName[e.floor(w)], elapsed)
		r.FloorCPU = compare(e, byName[e.floor(w)], func(o round) float64 { return o.Cost.cpu() })
		if kind := e.langgraph(w); kind != "" {
			r.Postgres = compare(e, byName["langgraph postgres "+kind], elapsed)
			r.SQLite = compare(e, byName["langgraph sqlite "+kind], elapsed)
		}
		rows = append(rows, r)
	}
	return rows
}

func sampleOf(rounds []round, of func(round) float64) testbed.Sample {
	out := make(testbed.Sample, len(rounds))
	for i, r := range rounds {
		out[i] = of(r)
	}
	return out
}

// compare takes the ratios of the rounds that both took part in.
func compare(e, base *entrant, of func(round) float64) *ratio {
	if base == nil || base == e || len(e.rounds) == 0 || len(base.rounds) == 0 {
		return nil
	}
	s := sampleOf(e.rounds, of).Over(sampleOf(base.rounds, of))
	if math.IsNaN(s.Median()) || math.IsInf(s.Median(), 0) {
		return nil
	}
	return &ratio{To: base.name, Median: s.Median(), Low: s.Min(), High: s.Max()}
}

// usual is the median of each cost.
func usual(rounds []round) cost {
	median := func(of func(cost) float64) float64 {
		return sampleOf(rounds, func(r round) float64 { return of(r.Cost) }).Median()
	}
	methods := func(of func(cost) map[string]float64) map[string]float64 {
		out := map[string]float64{}
		for _, r := range rounds {
			for method := range of(r.Cost) {
				out[method] = median(func(c cost) float64 { return of(c)[method] })
			}
		}
		return out
	}
	c := cost{
		ClientCalls: methods(func(c cost) map[string]float64 { return c.ClientCalls }),
		WorkerCalls: methods(func(c cost) map[string]float64 { return c.WorkerCalls }),
		ClientCPU:   median(func(c cost) float64 { return c.ClientCPU }),
		WorkerCPU:   median(func(c cost) float64 { return c.WorkerCPU }),
		ServerCPU:   median(func(c cost) float64 { return c.ServerCPU }),
		Events:      median(func(c cost) float64 { return c.Events }),
		Bytes:       median(func(c cost) float64 { return c.Bytes }),
		LongestTask: median(func(c cost) float64 { return c.LongestTask }),
	}
	for _, of := range []func(*cost) **float64{
		func(c *cost) **float64 { return &c.Commits }, func(c *cost) **float64 { return &c.Stored },
	} {
		if *of(&rounds[0].Cost) != nil {
			v := median(func(c cost) float64 { return *cmp.Or(*of(&c), new(float64)) })
			*of(&c) = &v
		}
	}
	return c
}

type column struct {
	head string
	of   func(row) string
}

// columns are the table's, in order.
var columns = []column{
	{"ms", func(r row) string { return digits(r.Milliseconds) }},
	{"of floor", func(r row) string { return r.Floor.String() }},
	{"CPU of floor", func(r row) string { return r.FloorCPU.String() }},
	{"of LangGraph+PG", func(r row) string { return r.Postgres.String() }},
	{"+SQLite", func(r row) string { return r.SQLite.String() }},
	{"client calls", func(r row) string { return count(r.Cost.ClientCalls) }},
	{"worker calls", func(r row) string { return count(r.Cost.WorkerCalls) }},
	{"commits", func(r row) string { return unlessNil(r.Cost.Commits, 1) }},
	{"stored KiB", func(r row) string { return unlessNil(r.Cost.Stored, 1024) }},
	{"events", func(r row) string { return unlessZero(r.Cost.Events) }},
	{"history KiB", func(r row) string { return unlessZero(r.Cost.Bytes / 1024) }},
	{"longest task ms", func(r row) string { return unlessZero(r.Cost.LongestTask) }},
	{"CPU ms: client", func(r row) string { return unlessZero(r.Cost.ClientCPU) }},
	{"worker", func(r row) string { return unlessZero(r.Cost.WorkerCPU) }},
	{"server", func(r row) string { return unlessZero(r.Cost.ServerCPU) }},
}

// String is the median with its spread.
func (r *ratio) String() string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%s [%s-%s]", digits(r.Median), digits(r.Low), digits(r.High))
}

// digits has two or three digits that count.
func digits(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func unlessZero(v float64) string {
	if v == 0 {
		return "-"
	}
	return digits(v)
}

func unlessNil(v *float64, unit float64) string {
	if v == nil {
		return "-"
	}
	return digits(*v / unit)
}

func count(calls map[string]float64) string {
	sum := 0.0
	for _, n := range calls {
		sum += n
	}
	return unlessZero(sum)
}

// printTable prints the rows of one workload.
func printTable(out io.Writer, w *workload, rows []row) error {
	fmt.Fprintf(out, "\n%s: %s\n", w.name, w.about)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	heads := []string{"way"}
	shown := slices.DeleteFunc(slices.Clone(columns), func(c column) bool { // of what nobody has there is no column
		return !slices.ContainsFunc(rows, func(r row) bool { return len(r.Rounds) > 0 && c.of(r) != "-" })
	})
	for _, c := range shown {
		heads = append(heads, c.head)
	}
	fmt.Fprintln(t, strings.Join(heads, "\t"))
	for _, r := range rows {
		cells := []string{r.Way}
		if len(r.Rounds) == 0 {
			fmt.Fprintln(t, r.Way+"\tfailed")
			continue
		}
		for _, c := range shown {
			cells = append(cells, c.of(r))
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Failed != "" {
			fmt.Fprintf(out, "%s failed after %d rounds: %s\n", r.Way, len(r.Rounds), r.Failed)
		}
	}
	return nil
}

// printCalls prints the remote calls of the rows by method: what a caller causes, and what that makes the worker do.
func printCalls(out io.Writer, rows []row) {
	print := func(r row, who string, calls map[string]float64) {
		var each []string
		for _, method := range slices.Sorted(maps.Keys(calls)) {
			if calls[method] > 0 { // some come once in many operations
				each = append(each, method+" "+digits(calls[method]))
			}
		}
		if len(each) > 0 {
			fmt.Fprintf(out, "%s, calls of the %s: %s\n", r.Way, who, strings.Join(each, ", "))
		}
	}
	for _, r := range rows {
		print(r, "client", r.Cost.ClientCalls)
		print(r, "worker", r.Cost.WorkerCalls)
	}
}

// encode is the report as JSON.
func (r *report) encode() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	return append(text, '\n'), err
}
