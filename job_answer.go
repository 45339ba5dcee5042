package superstep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"superstep.dev/job"
)

// JobAnswer waits until a job has finished and returns what it has made, whole: texts that are stored with the attempts are
// read there. The end of ctx ends only the waiting.
//
// Errors: a *[JobError] when the job failed or was stopped; [ErrNotFound], also for a text that the server has no more;
// [ErrNoWorker], [ErrNoServer].
func (c *Client) JobAnswer(ctx context.Context, id string) (JobAnswer, error) {
	last, err := c.theLastJob(ctx, id)
	if err != nil {
		return JobAnswer{}, err
	}
	if last.open {
		// Why a run ends is in what it leaves; a run that cannot be waited for is none that has ended.
		if err := c.awaitEnd(ctx, last); ctx.Err() != nil {
			return JobAnswer{}, errors.Join(ctx.Err(), err)
		}
		if last, err = c.theLastJob(ctx, id); err != nil {
			return JobAnswer{}, err
		}
		if last.open { // it was recovered at once
			return c.JobAnswer(ctx, id)
		}
	}
	board, err := c.jobLeft(ctx, last)
	if err != nil {
		return JobAnswer{}, err
	}
	v := c.jobView(last, board.View(time.Now()))
	if v.Status != job.StatusFinished {
		return JobAnswer{View: v}, notFinished(v)
	}
	return c.answerOf(ctx, v, board.Answer())
}

// notFinished says why a job that has ended has no answer.
func notFinished(v job.View) error {
	reason := v.Reason
	if reason == "" {
		reason = "nobody said why"
	}
	return &JobError{View: v, Message: reason + ". Let it go on: superstep job recover " + v.ID}
}

// answerOf reads the parts of an answer that are stored elsewhere.
func (c *Client) answerOf(ctx context.Context, v job.View, parts []job.Input) (JobAnswer, error) {
	for i, p := range parts {
		if p.Text != "" || p.Stored == nil {
			continue
		}
		text, err := c.storedOutput(ctx, *p.Stored)
		if err != nil {
			return JobAnswer{View: v}, fmt.Errorf("job %s: the output of subjob %s: %w", v.ID, p.SubJob, err)
		}
		parts[i].Text = text
	}
	return newAnswer(v, parts), nil
}

func newAnswer(v job.View, parts []job.Input) JobAnswer {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = strings.TrimSpace(p.Text)
	}
	return JobAnswer{View: v, Text: strings.Join(texts, "\n"), Parts: parts}
}

// storedOutput reads an output where its attempt has left it, and checks that it is the one that is meant.
func (c *Client) storedOutput(ctx context.Context, at job.Reference) (string, error) {
	m, err := c.storedMessage(ctx, at.Thread, at.RunID)
	if err == nil && !at.Fits(m.Output) {
		err = &Error{Kind: ErrNotFound, Thread: at.Thread, Message: fmt.Sprintf("run %s of thread %q holds another output than the one that is referred to",
			at.RunID, at.Thread)}
	}
	return m.Output, err
}
