package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"superstep.dev/internal/heaproom"
	"superstep.dev/test/bench/testbed"
)

// field is who takes part.
type field struct {
	options
	bed    *testbed.Bed
	ways   []*way
	report report
	// dsn is of a database that is not there yet, of a PostgreSQL server; "" without one. postgresPID is its process.
	dsn         string
	postgresPID int
	database    database
	ends        []func() error
}

func (f *field) close() error {
	var failed []error
	for _, end := range slices.Backward(f.ends) {
		failed = append(failed, end())
	}
	return errors.Join(failed...)
}

// chosen are the ways that do a workload, and that were asked for.
func (f *field) chosen(w *workload) (out []*way) {
	named := f.run != nil && strings.Contains(f.run.String(), w.name)
	if w.asked && !named && !(f.list && f.run == nil) {
		return nil
	}
	for _, one := range f.ways {
		if one.can(w) && (f.run == nil || f.run.MatchString(w.name+"/"+one.name)) {
			out = append(out, one)
		}
	}
	return out
}

// gather makes all ways there are; when they are only to be listed it starts nothing.
func (f *field) gather(ctx context.Context) error {
	heaproom.Give() // this process has a worker too
	if err := f.postgres(ctx); err != nil {
		return err
	}
	plugin := f.plugin(ctx)
	for _, store := range f.stores {
		if store == "postgres" && f.dsn == "" && !f.list {
			continue // it has been said
		}
		if err := f.temporal(ctx, store, plugin); err != nil {
			return fmt.Errorf("a Temporal server on %s: %w", store, err)
		}
	}
	for _, l := range f.langGraphs() {
		if err := f.langGraph(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// postgres starts a PostgreSQL server if anybody wants one.
func (f *field) postgres(ctx context.Context) error {
	if f.list || f.langgraph == "" && f.langgraphjs == "" && !slices.Contains(f.stores, "postgres") {
		return nil
	}
	dsn, p, err := f.bed.StartPostgres(ctx)
	if errors.Is(err, testbed.ErrNoPostgres) {
		f.leaveOut("everything on PostgreSQL: " + err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	f.dsn, f.postgresPID = dsn, p.PID()
	asked, end := askPostgres(dsn)
	f.database = asked
	f.ends = append(f.ends, end)
	version, _ := exec.CommandContext(ctx, testbed.FindPostgres("postgres"), "--version").Output() // it runs
	f.report.Versions["PostgreSQL"] = strings.TrimSpace(strings.TrimPrefix(string(version), "postgres (PostgreSQL) "))
	return nil
}

func (f *field) leaveOut(what string) { f.report.LeftOut = append(f.report.LeftOut, what) }

// temporal starts a server with its workers, and makes the ways that use it.
func (f *field) temporal(ctx context.Context, store string, plugin bool) error {
	t := &cluster{store: store, bed: f.bed, keeps: f.storage}
	f.ends = append(f.ends, t.stop)
	if !f.list {
		if store == "postgres" {
			t.base.serverPIDs, t.base.database = []int{f.postgresPID}, f.database
		}
		if err := t.start(ctx, f.dsn); err != nil {
			return err
		}
		f.report.Versions["Temporal server"] = t.version
	}
	f.ways = append(f.ways, t.ways()...)
	if !plugin {
		return nil
	}
	ways, err := f.pluginWays(ctx, t)
	f.ways = append(f.ways, ways...)
	return err
}
