package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/past"
	"superstep.dev/thread"
)

// mostCompleted bounds the completed steps of a record.
const mostCompleted = 1000

// Checkpoint puts a checkpoint's record together, for both runtimes.
func Checkpoint(ctx context.Context, rt Runtime, g *graphadapter.Graph, r thread.CheckpointRequest) (thread.CheckpointRecord, error) {
	at := thread.StateRequest{Thread: r.Thread, Checkpoint: r.Checkpoint}
	state, err := rt.StateOf(ctx, g, at)
	if err != nil {
		return thread.CheckpointRecord{}, err
	}
	now := state
	if r.Checkpoint != "" {
		if now, err = rt.StateOf(ctx, g, thread.StateRequest{Thread: r.Thread}); err != nil {
			return thread.CheckpointRecord{}, err
		}
	}
	if now.Checkpoint == state.Checkpoint {
		state, r.Checkpoint = now, "" // it stands there: what has finished since is known too
	}
	lines, err := rt.HistoryOf(ctx, g, thread.HistoryRequest{Thread: r.Thread})
	if err != nil {
		return thread.CheckpointRecord{}, err
	}
	origin, err := rt.OriginOf(ctx, g, r.Thread, r.Checkpoint)
	if err != nil {
		return thread.CheckpointRecord{}, err
	}
	return checkpointRecord(state, r.Checkpoint != "", lines, origin)
}

// checkpointRecord is the record of the checkpoint that state shows; passed says that the thread stands elsewhere.
func checkpointRecord(state thread.StateView, passed bool, lines []thread.CheckpointView, origin past.Origin) (thread.CheckpointRecord, error) {
	out := thread.CheckpointRecord{ID: state.Checkpoint, Thread: state.Thread, Graph: state.Graph, RunID: origin.Run, CreatedAt: state.CreatedAt,
		Parent: state.Parent, Source: state.Source, Step: state.Step, Status: state.Status, Nodes: state.Next,
		SideEffects: []thread.SideEffect{}, PendingSideEffects: []string{}, PendingActions: pendingActions(state), Artifacts: artifacts(state.Values)}
	if origin.Spec != nil {
		var err error
		if out.PlanVersion, err = graphadapter.Fingerprint(origin.Spec); err != nil {
			return out, err
		}
	}
	for _, t := range state.Tasks {
		if t.Done && !passed && !slices.Contains(out.Finished, t.Node) {
			out.Finished = append(out.Finished, t.Node)
		}
	}
	out.CompletedSteps, out.More = completedSteps(state.Checkpoint, lines)
	for _, e := range origin.Effects {
		out.SideEffects = append(out.SideEffects, sideEffect(e))
		if e.State == ledger.StateIntent || e.State == ledger.StateUnknown {
			out.PendingSideEffects = append(out.PendingSideEffects, e.Key)
		}
	}
	if len(out.PendingSideEffects) > 0 && !passed {
		out.Recheck = append(out.Recheck, thread.RecheckEffects)
	}
	if len(out.PendingActions) > 0 && !passed {
		out.Recheck = append(out.Recheck, thread.RecheckPermissions)
	}
	out.ResumePolicy = resumePolicy(state.Status, passed, len(out.PendingActions) > 0)
	return out, nil
}

// completedSteps are the supersteps on the way to a checkpoint, of which lines are the whole history, newest first.
func completedSteps(checkpoint string, lines []thread.CheckpointView) (steps []thread.CompletedStep, more int) {
	byID := make(map[string]thread.CheckpointView, len(lines))
	for _, l := range lines {
		byID[l.Checkpoint] = l
	}
	steps = []thread.CompletedStep{}
	for line, known := byID[checkpoint]; known; line, known = byID[line.Parent] {
		delete(byID, line.Checkpoint) // no line comes by a checkpoint twice
		switch {
		case len(line.Ran) == 0:
		case len(steps) == mostCompleted:
			more++
		default:
			steps = append(steps, thread.CompletedStep{Step: line.Step, Nodes: line.Ran, Checkpoint: line.Checkpoint})
		}
	}
	slices.Reverse(steps)
	return steps, more
}

func sideEffect(e past.EffectRecord) thread.SideEffect {
	out := thread.SideEffect{Tool: e.Name, Key: e.Key, Node: e.Node, Step: e.Step, State: string(e.State), ParamsHash: e.ParamsHash, Attempts: e.Attempts}
	if e.Approved != nil {
		out.Approval = e.Approved.Question
	}
	return out
}

// pendingActions are the actions that are to be approved there, without their parameters.
func pendingActions(state thread.StateView) []thread.PendingAction {
	questions, seen, out := slices.Clone(state.Questions), map[string]bool{}, []thread.PendingAction{}
	for _, t := range state.Tasks {
		questions = append(questions, t.Questions...)
	}
	for _, q := range questions {
		if q.Approval == nil || seen[q.ID] {
			continue
		}
		seen[q.ID] = true
		a := q.Approval.Action
		out = append(out, thread.PendingAction{Question: q.ID, Node: q.Node, Tool: a.Tool, ToolVersion: a.ToolVersion, ParamsHash: a.ParamsHash,
			Digest: q.Approval.Digest, Key: a.Key, Permissions: a.Permissions, Requester: a.Requester, Risk: string(a.Risk)})
	}
	return out
}

func artifacts(values map[string]json.RawMessage) []thread.ArtifactRef {
	out := make([]thread.ArtifactRef, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		sum := sha256.Sum256(values[name])
		out = append(out, thread.ArtifactRef{Name: name, Bytes: len(values[name]), SHA256: hex.EncodeToString(sum[:])})
	}
	return out
}

// resumePolicy says what has to happen before a thread with that status goes on.
func resumePolicy(s thread.Status, passed, decides bool) thread.ResumePolicy {
	switch {
	case passed:
		return thread.ResumeByFork
	case s == thread.StatusWaiting && decides:
		return thread.ResumeAfterApproval
	case s == thread.StatusWaiting:
		return thread.ResumeAfterAnswer
	case s == thread.StatusWaitingEvent:
		return thread.ResumeAfterEvent
	case s == thread.StatusPaused:
		return thread.ResumeAfterUnpause
	case s == thread.StatusStopped:
		return thread.ResumeAfterInvoke
	case s.Unfinished():
		return thread.ResumeAfterRetry
	case s == thread.StatusFinished:
		return thread.ResumeAfterInput
	}
	return thread.ResumeByItself
}
