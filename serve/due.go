package serve

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"

	"go.temporal.io/sdk/temporal"

	"superstep.dev/serve/cron"
	"superstep.dev/serve/record"
)

// requestOf is the request for a cron's runs.
func requestOf(c cron.Cron) (runRequest, error) {
	var body runRequest
	if json.Unmarshal(raw(c.Payload), &body) != nil {
		return body, refuse(http.StatusUnprocessableEntity, "the body does not fit that of a run")
	}
	body.AssistantID, body.IfNotExists = c.Assistant, ""
	if c.OnCompletion != nil {
		body.OnCompletion = *c.OnCompletion
	}
	body.Metadata = maps.Clone(c.Metadata)
	if body.Metadata == nil {
		body.Metadata = object{}
	}
	body.Metadata["cron_id"] = raw(c.ID)
	return body, body.check()
}

// CronThread implements cron.Server.
func (s crons) CronThread(ctx context.Context, c cron.Cron, thread string) error {
	t, err := s.records.Create(ctx, thread, c.Marks, true)
	if err == nil {
		s.index.note(t.Line())
	}
	return err
}

// CronRun implements cron.Server. A cron whose thread was deleted ends. The thread of a single run may be gone because that run was
// asked for before, and is over.
func (s crons) CronRun(ctx context.Context, c cron.Cron, thread, run string) error {
	body, err := requestOf(c)
	if err == nil {
		body.run = run
		a := &asking{request: body, apart: c.Thread == nil}
		a.thread.ID = thread
		if c.User != nil {
			a.by = *c.User
		}
		_, err = s.records.Get(ctx, thread)
		if errors.Is(err, record.ErrMissing) {
			return s.orphaned(ctx, c)
		}
		if err == nil {
			err = a.take(ctx, s.Server, "")
		}
	}
	// An assistant that is not found may be that of a graph whose workers are being replaced: that is tried again.
	if f := faultOf(err); err != nil && f.status < 500 && f.status != http.StatusNotFound {
		s.log.Warnw("a cron's run was refused", "cron", c.ID, "assistant", c.Assistant, "thread", thread, "error", err)
		return temporal.NewNonRetryableApplicationError(f.detail, "superstep.CronRefused", nil)
	}
	return err
}

func (s crons) orphaned(ctx context.Context, c cron.Cron) error {
	if c.Thread == nil {
		return nil
	}
	s.log.Infow("a cron ends, as its thread was deleted", "cron", c.ID, "thread", *c.Thread)
	err := s.end(ctx, c)
	if errors.Is(err, cron.ErrMissing) {
		return nil
	}
	return err
}
