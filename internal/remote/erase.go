package remote

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"superstep.dev/approval"
	"superstep.dev/internal/archive"
	"superstep.dev/job"
	"superstep.dev/thread"
	"superstep.dev/thread/storage"
	"superstep.dev/workflows/protocol"
)

// eraser erases one thread, or one job. The newest run of the thread, or of the leader, goes last: as long as it is there the id cannot
// be taken by another thread, and an erasure that was killed is begun again from it. Then a [hold] has the id, while the values go.
type eraser struct {
	*Threads
	thread.EraseRequest
	proof thread.Erasure
	names []string // of the values that were removed
	hold  hold
	// kept is the archive of what is erased, of which nothing goes that is not there; nil for none.
	kept *archive.File
}

// Erase removes all that the server and the storage have of a thread.
func (c *Threads) Erase(ctx context.Context, r thread.EraseRequest) (thread.Erasure, error) {
	if of, subjob := job.OfAttempt(r.Thread); subjob != "" {
		return thread.Erasure{}, &thread.Error{Kind: thread.ErrBadInput, Thread: r.Thread, Message: fmt.Sprintf("%q is an attempt of job %q", r.Thread, of),
			Do: "Erase the job, with all its attempts", Command: []string{"erase", job.WorkflowID(of), "--yes"}}
	}
	e := newEraser(c, r)
	threads, err := e.threads(ctx)
	if err == nil {
		err = e.reachValues(ctx, threads)
	}
	if err == nil {
		err = e.rest(ctx, threads)
	}
	if err == nil {
		err = e.keepAudit(ctx, threads)
	}
	if err == nil {
		err = e.remove(ctx, threads)
	}
	if err == nil && e.Archives != "" {
		err = e.removeArchives()
	}
	if err != nil {
		return e.proof, c.explain(err, "", r.Thread)
	}
	return e.proof, nil
}

func newEraser(c *Threads, r thread.EraseRequest) *eraser {
	return &eraser{Threads: c, EraseRequest: r, proof: thread.Erasure{Thread: r.Thread, Threads: []string{}, Runs: []thread.Removal{}}}
}

// threads are the attempts of a job, and last the job or the thread itself, each with the runs that the server has.
func (e *eraser) threads(ctx context.Context) ([]threadRuns, error) {
	own, err := e.runsOf(ctx, e.Thread)
	if err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	if job.Of(e.Thread) != "" {
		if ids, err = e.attempts(ctx, own); err != nil {
			return nil, err
		}
	}
	var all []threadRuns
	for _, id := range sortedKeys(ids) {
		attempt, err := e.runsOf(ctx, id)
		if err != nil {
			return nil, err
		}
		all = append(all, attempt)
	}
	all = append(all, own)
	for _, t := range all {
		e.proof.Threads = append(e.proof.Threads, t.id)
	}
	return all, nil
}

func sortedKeys(set map[string]bool) []string {
	keys := make([]string, 0, len(set))
	for key := range set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// rest ends what is open, if that is wanted.
func (e *eraser) rest(ctx context.Context, all []threadRuns) error {
	own := all[len(all)-1]
	open := slices.IndexFunc(all, func(t threadRuns) bool { return t.open })
	switch {
	case open < 0:
		return nil
	case !e.Cancel:
		return e.isOpen(all[open].id, "its run is open, and what it does would not be known to anybody", []string{"erase", e.Thread, "--yes", "--cancel"})
	case own.open && own.kind == protocol.LeaderWorkflow:
		if _, err := (&Jobs{e.reader}).StopJob(ctx, job.Of(e.Thread), job.Halt{Reason: cmp.Or(e.Reason, "to be erased")}); err != nil {
			return err
		}
	case own.open:
		if err := e.cancel(ctx, own.id); err != nil {
			return err
		}
	}
	for _, t := range all {
		if t.open && t.id != own.id { // a job that has ended ends none, and one that was made to end may have left some
			if err := e.cancel(ctx, t.id); err != nil {
				return err
			}
		}
		newest, err := e.described(ctx, t.id, "")
		if err != nil {
			return err
		}
		if isOpen(newest) {
			return e.isOpen(t.id, "it was told to end, and has not yet: a worker is needed, or a person", []string{"show", t.id})
		}
	}
	return nil
}

// cancel tells a run to end, and waits for that for a while.
func (e *eraser) cancel(ctx context.Context, id string) error {
	_, err := e.CancelRun(ctx, nil, thread.CancelRequest{Thread: id, Reason: cmp.Or(e.Reason, "to be erased"), By: e.By, Token: e.Token})
	return err
}

func (e *eraser) isOpen(id, why string, command []string) error {
	return &thread.Error{Kind: thread.ErrRunning, Thread: id, Message: fmt.Sprintf("thread %q is not erased: %s", id, why),
		Do: "End it first", Command: command}
}

// reachValues refuses an eraser without a storage where a history refers to one: the values would stay, and nothing would name them any more.
func (e *eraser) reachValues(ctx context.Context, all []threadRuns) error {
	if e.cfg.Storage != nil {
		return nil
	}
	for _, t := range all {
		for _, run := range t.runs {
			err := e.events(ctx, t.id, run, func(event *historypb.HistoryEvent) error { return e.cfg.Storage.References(ctx, event, nil) })
			if errors.Is(err, storage.ErrNone) {
				return &thread.Error{Kind: thread.ErrStorage, Thread: e.Thread, Message: fmt.Sprintf("thread %q is not erased", e.Thread), Cause: err}
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *eraser) keepAudit(ctx context.Context, all []threadRuns) error {
	for _, t := range all {
		if e.KeepAudit == nil || t.kind != protocol.GraphWorkflow {
			continue
		}
		err := e.KeepAudit(t.id, func() (approval.Export, error) { return e.ExportOf(ctx, nil, t.id) })
		if err != nil {
			return fmt.Errorf("the audit of thread %s cannot be kept, and nothing was erased: %w", t.id, err)
		}
		e.proof.AuditKept = append(e.proof.AuditKept, t.id)
	}
	return nil
}

// remove removes all runs but the newest of the last thread, then that and the values while the id is held.
func (e *eraser) remove(ctx context.Context, all []threadRuns) (err error) {
	for i, t := range all {
		runs := t.runs
		if i == len(all)-1 && len(runs) > 0 {
			runs = runs[:len(runs)-1]
		}
		for _, run := range runs {
			if err := e.removeRun(ctx, t.id, run); err != nil {
				return err
			}
		}
	}
	own := &all[len(all)-1]
	if there, err := e.isThere(ctx, own); err != nil || !there {
		return cmp.Or(err, e.check(ctx, all))
	}
	defer func() {
		if err != nil {
			e.giveUp(ctx)
		}
	}()
	if err := e.holdID(ctx, own); err != nil {
		return err
	}
	if len(own.runs) > 0 {
		if err := e.removeRun(ctx, own.id, own.runs[len(own.runs)-1]); err != nil {
			return err
		}
	}
	if err := e.whileHeld(ctx, own.id, e.removeValues); err != nil {
		return err
	}
	e.hold.emptied = time.Now()
	if err := e.letGo(ctx, *own); err != nil {
		return err
	}
	return e.check(ctx, all)
}

// isThere reports whether anything is left to be removed under the id itself.
func (e *eraser) isThere(ctx context.Context, own *threadRuns) (bool, error) {
	if s := e.cfg.Storage; s != nil {
		e.proof.Storage = s.Where()
		if values, err := s.List(ctx, storage.SpaceOf(e.cfg.Namespace, e.Thread)); err != nil || len(values) > 0 {
			return true, err
		}
	}
	return len(own.runs)+len(own.holds) > 0, nil
}

// removeRun removes a closed run, and returns when the server has it no more.
func (e *eraser) removeRun(ctx context.Context, id, run string) error {
	d, err := e.described(ctx, id, run)
	if err != nil || d == nil {
		return err
	}
	if isOpen(d) { // to remove it would end it without a word
		return e.isOpen(id, "a run of it has begun meanwhile", []string{"show", id})
	}
	gone := thread.Removal{Kind: thread.RemovedRun, Thread: id, Name: run}
	var sum archive.Sum
	if err := e.events(ctx, id, run, sum.Add); err != nil {
		return err
	}
	gone.Events, gone.Bytes, gone.SHA256 = sum.Events, sum.Bytes, sum.SHA256()
	if kept := e.kept; kept != nil {
		if r := kept.Run(id, run); r == nil || r.SHA256 != gone.SHA256 {
			return e.notKept(fmt.Sprintf("the history of run %s of %s", run, id))
		}
	}
	if err := e.delete(ctx, id, run); err != nil {
		return err
	}
	e.proof.Runs = append(e.proof.Runs, gone)
	e.tell(gone)
	return nil
}

// delete removes a run, and returns when the server has it no more.
func (c *server) delete(ctx context.Context, id, run string) error {
	defer func() { c.changed.note(id, true) }()
	_, err := c.temporal.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: c.cfg.Namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run}})
	var absent *serviceerror.NotFound
	if err != nil && !errors.As(err, &absent) {
		return err
	}
	return c.until(ctx, "the server still has run "+run, func() (bool, error) {
		d, err := c.described(ctx, id, run)
		return d == nil, err
	})
}

func (e *eraser) tell(gone thread.Removal) {
	if e.Removed != nil {
		e.Removed(gone)
	}
}

// emptyTries is how often a space is emptied in which something lies again: of a start that was refused, or of a task that a worker still has.
const emptyTries = 3

func (e *eraser) removeValues(ctx context.Context) error {
	s := e.cfg.Storage
	if s == nil {
		return nil
	}
	e.proof.Storage = s.Where()
	space := storage.SpaceOf(e.cfg.Namespace, e.Thread)
	var left []storage.Object
	for range emptyTries {
		err := s.Empty(ctx, space, func(o storage.Object) {
			e.proof.Values, e.proof.Bytes = e.proof.Values+1, e.proof.Bytes+o.Bytes
			e.names = append(e.names, o.Name)
			e.tell(thread.Removal{Kind: thread.RemovedValue, Thread: e.Thread, Name: o.Name, Bytes: o.Bytes})
		})
		if err == nil {
			left, err = s.List(ctx, space)
		}
		if err != nil {
			return err
		}
		if len(left) == 0 {
			break
		}
	}
	if len(e.names) > 0 {
		slices.Sort(e.names)
		sum := sha256.Sum256([]byte(strings.Join(e.names, "\n") + "\n"))
		e.proof.ValuesSHA256 = hex.EncodeToString(sum[:])
	}
	if len(left) > 0 {
		return fmt.Errorf("%d values were stored for thread %s while it was erased: a worker still has a task of it; erase it again", len(left), e.Thread)
	}
	return nil
}

// removeArchives removes what was archived of the thread, and what somebody who died was about to archive.
func (e *eraser) removeArchives() error {
	if err := archive.RemoveParts(e.Archives, e.Thread); err != nil {
		return unusable(e.Archives, err)
	}
	paths, err := archive.Of(e.Archives, e.Thread)
	if err != nil {
		return unusable(e.Archives, err)
	}
	for _, path := range paths {
		gone := thread.Removal{Kind: thread.RemovedArchive, Thread: e.Thread, Name: path}
		if gone.Bytes, gone.SHA256, err = archive.Remove(path); err != nil {
			return unusable(e.Archives, err)
		}
		e.proof.Archives = append(e.proof.Archives, gone)
		e.tell(gone)
	}
	return nil
}

// check asks the server and its index for what is left. A run that has begun since the id was let go is another thread's.
func (e *eraser) check(ctx context.Context, all []threadRuns) error {
	for _, t := range all {
		newest, err := e.described(ctx, t.id, "")
		if err != nil {
			return err
		}
		if newest != nil && t.has(runID(newest)) || newest != nil && t.id != e.Thread {
			return e.begunMeanwhile(t.id)
		}
		err = e.until(ctx, "the server's index still has thread "+t.id, func() (bool, error) {
			newest, err := e.described(ctx, t.id, "")
			if err == nil && newest != nil {
				err = e.wholeOrGone(ctx, t.id, runID(newest))
			}
			if err != nil {
				return false, err
			}
			listed, err := e.listed(ctx, "WorkflowId = "+quotedInQuery(t.id))
			return !slices.ContainsFunc(listed, func(run *commonpb.WorkflowExecution) bool { return newest == nil || t.has(run.GetRunId()) }), err
		})
		if err != nil {
			return err
		}
		e.ended.note(t.id, false)
		e.open.note(t.id, false)
		e.outputs.forget(t.id)
		e.endings.forget(t.id)
	}
	e.proof.Checked = time.Now().UTC()
	return nil
}

// wholeOrGone looks at a run that has begun behind the hold: a new turn that waited for it may have stored its values before.
func (e *eraser) wholeOrGone(ctx context.Context, id, run string) error {
	err := e.beganWhole(ctx, id, run, time.Time{})
	if errors.Is(err, thread.ErrErasing) { // whose caller begins it again
		return nil
	}
	return err
}

// goneWithin bounds the time that a server is given to remove what it has taken the request for: a run that has just ended takes it up
// to half a minute when it has nothing else to do.
const goneWithin = 5 * time.Minute

// until asks again and again; what says what was waited for in vain.
func (c *server) until(ctx context.Context, what string, gone func() (bool, error)) error {
	for began, pause := time.Now(), 10*time.Millisecond; ; pause = min(2*pause, time.Second) {
		is, err := gone()
		if is || err != nil {
			return err
		}
		if time.Since(began) > goneWithin {
			return fmt.Errorf("%s after %v: erase it again", what, goneWithin)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
