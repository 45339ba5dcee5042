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
	// postgresPID is the process of the PostgreSQL server; 0 without one.
	postgresPID int
	ends        []func() error
}

func (f *field) close() error {
	var failed []error
	for _, end := range slices.Backward(f.ends) {
		failed = append(failed, end())
	}
	return errors.Join(failed...)
}

func (f *field) workloads() []*workload { return workloads(f.turns, f.crowd) }

// chosen are the ways that do a workload, and that were asked for.
func (f *field) chosen(w *workload) (out []*way) {
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
	dsn, err := f.postgres(ctx)
	if err != nil {
		return err
	}
	for _, store := range f.stores {
		if store == "postgres" && dsn == "" && !f.list {
			continue // it has been said
		}
		if err := f.temporal(ctx, store, dsn); err != nil {
			return fmt.Errorf("a Temporal server on %s: %w", store, err)
		}
	}
	return f.langGraph(ctx, dsn)
}

// postgres starts a PostgreSQL server if anybody wants one, and returns the DSN of a database of it that is not there yet.
func (f *field) postgres(ctx context.Context) (dsn string, err error) {
	if f.list || f.langgraph == "" && !slices.Contains(f.stores, "postgres") {
		return "", nil
	}
	dsn, p, err := f.bed.StartPostgres(ctx)
	if errors.Is(err, testbed.ErrNoPostgres) {
		f.leaveOut("everything on PostgreSQL: " + err.Error())
		return "", nil
	}
	if err != nil {
		return "", err
	}
	f.postgresPID = p.PID()
	version, _ := exec.CommandContext(ctx, testbed.FindPostgres("postgres"), "--version").Output() // it runs
	f.report.Versions["PostgreSQL"] = strings.TrimSpace(strings.TrimPrefix(string(version), "postgres (PostgreSQL) "))
	return dsn, nil
}

func (f *field) leaveOut(what string) { f.report.LeftOut = append(f.report.LeftOut, what) }

// temporal starts a server with its workers, and makes the ways that use it.
func (f *field) temporal(ctx context.Context, store, dsn string) error {
	t := &cluster{store: store, bed: f.bed}
	if !f.list {
		if err := t.start(ctx, dsn); err != nil {
			return errors.Join(err, t.stop())
		}
		f.report.Versions["Temporal server"] = t.version
		if store == "postgres" {
			t.base.serverPIDs = append(t.base.serverPIDs, f.postgresPID)
		}
	}
	f.ends = append(f.ends, t.stop)
	f.ways = append(f.ways, t.ways()...)
	return nil
}
