package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"superstep.dev/internal/archive"
	"superstep.dev/job"
	"superstep.dev/thread"
	"superstep.dev/thread/storage"
	"superstep.dev/workflows/protocol"
)

// pruneTogether is how many threads are archived and erased at once: each waits for the server most of the time.
const pruneTogether = 8

// Prune archives and erases what has ended before a moment.
func Prune(ctx context.Context, c *Threads, r thread.PruneRequest) (thread.Pruning, error) {
	report := thread.Pruning{Before: r.Before.UTC(), DryRun: r.DryRun, Threads: []thread.Pruned{}, Failed: []thread.Pruned{}}
	switch {
	case r.Before.IsZero():
		return report, &thread.Error{Kind: thread.ErrBadInput, Message: "it is not said which threads are old enough", Do: "Give the moment before which they have ended (Before)"}
	case r.Before.After(time.Now()):
		return report, &thread.Error{Kind: thread.ErrBadInput, Message: fmt.Sprintf("%v is in the future: nothing has ended before that", r.Before),
			Do: "Give a moment of the past (Before)"}
	case r.Dir == "" && !r.DryRun:
		return report, &thread.Error{Kind: thread.ErrBadInput, Message: "threads are archived before they are erased, and there is no directory for that",
			Do: "Name one (Dir), or only look what would be pruned (DryRun)"}
	}
	if !r.DryRun {
		release, err := archive.Lock(r.Dir)
		if err != nil {
			return report, unusable(r.Dir, err)
		}
		defer release()
	}
	all, err := toPrune(ctx, c, r)
	if err != nil {
		return report, c.explain(err, r.Graph, "")
	}
	var mu sync.Mutex
	var first error
	removed := func(gone thread.Removal) {
		mu.Lock()
		defer mu.Unlock()
		if r.Removed != nil {
			r.Removed(gone)
		}
	}
	group := errgroup.Group{}
	group.SetLimit(pruneTogether)
	for _, id := range all {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			p := &pruning{eraser: newEraser(c, thread.EraseRequest{Thread: id, Removed: removed}), request: r}
			pruned, is, err := p.thread(ctx)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil && ctx.Err() != nil:
				return nil
			case err != nil:
				err = c.explain(err, "", id)
				pruned.Error = err.Error()
				if report.Failed = append(report.Failed, pruned); first == nil {
					first = err
				}
			case is:
				report.Threads = append(report.Threads, pruned)
			default:
				return nil
			}
			if r.Done != nil {
				r.Done(pruned)
			}
			return nil
		})
	}
	_ = group.Wait()
	if ctx.Err() != nil {
		return report, context.Cause(ctx)
	}
	if first != nil {
		first = fmt.Errorf("%d of %d threads were not pruned, the first: %w", len(report.Failed), len(report.Failed)+len(report.Threads), first)
	}
	return report, first
}

// toPrune are the threads and jobs of which a run has ended before the moment, and those of which an archive is there without the proof
// that they were erased: a process that was killed may have left nothing of them on the server but that. Those that ended first come first.
func toPrune(ctx context.Context, c *Threads, r thread.PruneRequest) ([]string, error) {
	seen, ids := map[string]bool{}, []string{}
	add := func(id string) {
		if of, subjob := job.OfAttempt(id); subjob != "" {
			id = job.WorkflowID(of)
		}
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	if !r.DryRun {
		archive.Sweep(r.Dir)
		paths, err := archive.Unproved(r.Dir, "")
		if err != nil {
			return nil, unusable(r.Dir, err)
		}
		for _, path := range paths {
			id, err := archive.ThreadOf(path)
			if err != nil {
				return nil, err
			}
			add(id)
		}
	}
	query := fmt.Sprintf("WorkflowType IN ('%s', '%s') AND CloseTime < '%s'", protocol.GraphWorkflow, protocol.LeaderWorkflow, r.Before.UTC().Format(time.RFC3339Nano))
	listed, err := newEraser(c, thread.EraseRequest{}).listed(ctx, query)
	for _, run := range listed {
		add(run.GetWorkflowId())
	}
	return ids, err
}

// unusable is the error of a directory that archives cannot be in.
func unusable(dir string, err error) error {
	do := "Name another one"
	if errors.Is(err, archive.ErrLocked) {
		do += ", or wait until that process has ended"
	}
	return &thread.Error{Kind: thread.ErrBadInput, Message: fmt.Sprintf("the directory %q of archives cannot be used", dir), Cause: err, Do: do}
}

// pruning prunes one thread, or one job.
type pruning struct {
	*eraser
	request thread.PruneRequest
	threads []threadRuns
}

// thread archives and erases, and reports whether the thread was one to prune.
func (p *pruning) thread(ctx context.Context) (out thread.Pruned, is bool, err error) {
	out.Thread = p.Thread
	if p.threads, err = p.eraser.threads(ctx); err != nil {
		return out, false, err
	}
	own := p.threads[len(p.threads)-1]
	there := false
	for _, t := range p.threads {
		if t.open || !t.closed.Before(p.request.Before) {
			return out, false, nil
		}
		there = there || len(t.runs) > 0
		if t.closed.After(out.Closed) {
			out.Closed = t.closed
		}
	}
	if own.newest != nil {
		info := own.newest.GetWorkflowExecutionInfo()
		out.Graph, out.Status = p.graphOf(info), statusOf(info.GetStatus())
	}
	if p.request.Graph != "" && out.Graph != p.request.Graph || !there && p.request.DryRun {
		return out, false, nil
	}
	if p.request.DryRun {
		return out, true, nil
	}
	if p.kept, err = p.archived(ctx, there); err != nil || p.kept == nil {
		return out, false, err
	}
	defer p.kept.Close()
	out.Archive, out.Bytes, out.SHA256 = p.kept.Path, p.kept.Bytes, p.kept.SHA256
	if err := p.holdsAll(ctx); err != nil {
		return out, false, err
	}
	if err := p.remove(ctx, p.threads); err != nil {
		return out, false, err
	}
	out.Erasure = &p.proof
	return out, true, p.prove(out)
}

// prove writes the proof beside the archive, and beside earlier ones of the thread of which nothing is left now either.
func (p *pruning) prove(out thread.Pruned) error {
	paths, err := archive.Unproved(p.request.Dir, p.Thread)
	if err != nil {
		return unusable(p.request.Dir, err)
	}
	for _, path := range paths {
		file, err := archive.Open(path)
		if err != nil {
			return err
		}
		file.Close()
		out.Archive, out.Bytes, out.SHA256 = path, file.Bytes, file.SHA256
		if err := archive.Prove(path, out); err != nil {
			return unusable(p.request.Dir, err)
		}
	}
	return nil
}

// archived is the file that the thread lies in, which is written unless it is there: whole, as what has its name is. Of a thread that the
// server does not have any more it is the one that is there, nil for none: what was erased of it is to be proved.
func (p *pruning) archived(ctx context.Context, there bool) (*archive.File, error) {
	newest := p.newest()
	if !there {
		paths, err := archive.Unproved(p.request.Dir, p.Thread)
		if err != nil {
			return nil, unusable(p.request.Dir, err)
		}
		if len(paths) == 0 {
			return nil, nil
		}
		return archive.Open(paths[0])
	}
	file, err := archive.Open(archive.Path(p.request.Dir, p.Thread, newest))
	if !errors.Is(err, thread.ErrNotFound) {
		return file, err
	}
	w, err := archive.Create(p.request.Dir, archive.Head{Thread: p.Thread, Newest: newest, Namespace: p.cfg.Namespace, At: time.Now().UTC()})
	if err != nil {
		return nil, unusable(p.request.Dir, err)
	}
	defer w.Abandon()
	if err := p.write(ctx, w); err != nil {
		return nil, err
	}
	path, err := w.Close()
	if err != nil {
		return nil, unusable(p.request.Dir, err)
	}
	return archive.Open(path)
}

// newest is the newest run of the thread, or of a job: of its leader while that is there.
func (p *pruning) newest() string {
	for _, t := range slices.Backward(p.threads) {
		if len(t.runs) > 0 {
			return t.runs[len(t.runs)-1]
		}
	}
	return ""
}

// write writes all runs, then all values: those that they refer to, wherever those lie, and what else lies in the thread's space.
func (p *pruning) write(ctx context.Context, w *archive.Writer) error {
	values := map[string]bool{}
	refers := func(m proto.Message) error {
		return p.cfg.Storage.References(ctx, m, func(name string) error {
			values[name] = true
			return nil
		})
	}
	for _, t := range p.threads {
		for _, run := range t.runs {
			described, err := p.described(ctx, t.id, run)
			if err == nil && described == nil {
				err = &thread.Error{Kind: thread.ErrNotFound, Thread: t.id, Message: fmt.Sprintf("run %s of thread %q was removed meanwhile", run, t.id)}
			}
			if err == nil {
				err = refers(described)
			}
			if err != nil {
				return err
			}
			err = w.Run(t.id, run, described, func(take func(*historypb.HistoryEvent) error) error {
				return p.events(ctx, t.id, run, func(event *historypb.HistoryEvent) error {
					if err := take(event); err != nil {
						return err
					}
					return refers(event)
				})
			})
			if err != nil {
				return err
			}
		}
	}
	return p.writeValues(ctx, w, values)
}

func (p *pruning) writeValues(ctx context.Context, w *archive.Writer, values map[string]bool) error {
	if p.cfg.Storage == nil {
		return nil
	}
	own, err := p.cfg.Storage.List(ctx, storage.SpaceOf(p.cfg.Namespace, p.Thread))
	if err != nil {
		return err
	}
	for _, o := range own {
		values[o.Name] = true
	}
	for _, name := range sortedKeys(values) {
		object, err := p.cfg.Storage.Raw(ctx, name)
		if err == nil {
			err = w.Value(name, object)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// holdsAll holds that the archive has all that is to be erased. Each run's history is held against the archive once more when it goes.
func (p *pruning) holdsAll(ctx context.Context) error {
	if p.kept.Thread != p.Thread || p.kept.Namespace != p.cfg.Namespace {
		return p.notKept(fmt.Sprintf("it is of thread %q of namespace %q, and a run of %q", p.kept.Thread, p.kept.Namespace, p.cfg.Namespace))
	}
	for _, t := range p.threads {
		for _, run := range t.runs {
			if p.kept.Run(t.id, run) == nil {
				return p.notKept("run " + run + " of " + t.id)
			}
		}
	}
	if p.cfg.Storage == nil {
		return nil
	}
	own, err := p.cfg.Storage.List(ctx, storage.SpaceOf(p.cfg.Namespace, p.Thread))
	for _, o := range own {
		if !p.kept.Has(o.Name) {
			return p.notKept("the stored value " + o.Name)
		}
	}
	return err
}

// notKept refuses to remove what the archive does not have.
func (e *eraser) notKept(what string) error {
	return &thread.Error{Kind: thread.ErrBadInput, Thread: e.Thread, Message: fmt.Sprintf("thread %q is not erased: archive %q does not have %s", e.Thread, e.kept.Path, what),
		Do: "Move that file into another directory, and prune again"}
}
