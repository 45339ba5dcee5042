package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"superstep.dev/serve/access"
	"superstep.dev/serve/assistant"
	"superstep.dev/serve/cron"
)

// crons are runs that are asked for by a calendar.
type crons struct{ *Server }

func (s crons) routes() []route {
	return []route{
		{"POST", "/runs/crons", "Makes a cron whose runs have threads of their own", s.createCron},
		{"POST", "/threads/{thread_id}/runs/crons", "Makes a cron whose runs are on a thread", s.createCron},
		{"POST", "/runs/crons/search", "Crons", s.searchCrons},
		{"POST", "/runs/crons/count", "How many crons there are", s.countCrons},
		{"GET", "/runs/crons/{cron_id}", "A cron", s.getCron},
		{"PATCH", "/runs/crons/{cron_id}", "Changes a cron", s.patchCron},
		{"DELETE", "/runs/crons/{cron_id}", "Ends a cron", s.deleteCron},
	}
}

// cronBody is what callers say of a cron beside the body of its runs.
type cronBody struct {
	Schedule     string          `json:"schedule" says:"word"`
	Timezone     *string         `json:"timezone" says:"word"`
	EndTime      json.RawMessage `json:"end_time" says:"null"`
	OnCompletion string          `json:"on_run_completed" says:"word"`
	Enabled      *bool           `json:"enabled"`
	// Metadata is the cron's, and its runs'.
	Metadata object `json:"metadata"`
}

// cronFields are those of a body that are the cron's, and no run's.
var cronFields = []string{"schedule", "timezone", "end_time", "on_run_completed", "enabled"}

// readCron reads a body: what it says of the cron, and the body of its runs.
func readCron(w http.ResponseWriter, r *http.Request) (body cronBody, payload object, err error) {
	if err = read(w, r, &payload); err != nil {
		return body, nil, err
	}
	if json.Unmarshal(raw(payload), &body) != nil {
		return body, nil, refuse(http.StatusUnprocessableEntity, "the body does not fit: schedule, timezone and on_run_completed are strings, enabled is a boolean")
	}
	for _, t := range []reflect.Type{of[cronBody](), of[runRequest]()} {
		if err := fits(raw(payload), t, ""); err != nil {
			return body, nil, err
		}
	}
	if v, there := payload["input"]; there && !slices.Contains([]byte("{["), v[0]) {
		return body, nil, refuse(http.StatusUnprocessableEntity, "input is no object and no list of such")
	}
	maps.DeleteFunc(payload, func(name string, _ json.RawMessage) bool { return slices.Contains(cronFields, name) })
	if !slices.Contains([]string{"", "delete", "keep"}, body.OnCompletion) {
		err = refuse(http.StatusUnprocessableEntity, "on_run_completed %q is neither delete nor keep", body.OnCompletion)
	}
	return body, payload, err
}

// changesNothing reports whether a body says nothing of a cron.
func (b *cronBody) changesNothing() bool {
	return b.Schedule == "" && b.Timezone == nil && b.EndTime == nil && b.OnCompletion == "" && b.Enabled == nil
}

// timeForms are the forms of a time, of which those without an offset are in UTC.
var timeForms = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02"}

// into makes what the body says part of a cron.
func (b *cronBody) into(c *cron.Cron) error {
	c.Schedule, c.Timezone = cmp.Or(b.Schedule, c.Schedule), cmp.Or(b.Timezone, c.Timezone)
	if b.OnCompletion != "" && c.Thread == nil {
		c.OnCompletion = &b.OnCompletion
	}
	if b.Enabled != nil {
		c.Enabled = *b.Enabled
	}
	if b.Metadata != nil {
		c.Metadata = maps.Clone(c.Metadata)
		maps.Copy(c.Metadata, b.Metadata)
	}
	if b.EndTime == nil {
		return nil
	}
	c.EndTime = nil
	var text string
	if !given(b.EndTime) {
		return nil
	}
	if json.Unmarshal(b.EndTime, &text) == nil {
		for _, form := range timeForms {
			if at, err := time.Parse(form, text); err == nil {
				c.EndTime = &at
				return nil
			}
		}
	}
	return refuse(http.StatusUnprocessableEntity, "end_time is no time such as 2027-01-31T09:00:00Z")
}

func (s crons) createCron(w http.ResponseWriter, r *http.Request) error {
	body, payload, err := readCron(w, r)
	if err != nil {
		return err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	c := cron.Cron{ID: id.String(), Payload: payload, Metadata: object{}, Enabled: true, Created: now, Updated: now}
	if r.PathValue("thread_id") != "" {
		t, err := s.record(r)
		if err != nil {
			return err
		}
		c.Thread = &t.ID
	} else {
		own := "delete"
		c.OnCompletion = &own
	}
	var named string
	if json.Unmarshal(payload["assistant_id"], &named) != nil || named == "" {
		return refuse(http.StatusUnprocessableEntity, "assistant_id is missing")
	}
	of, err := assistants(s).named(r.Context(), named)
	if err != nil {
		return err
	}
	c.Assistant = of.ID
	payload["assistant_id"] = raw(of.ID)
	if err := body.into(&c); err != nil {
		return err
	}
	if _, err := requestOf(c); err != nil {
		return err
	}
	if err := s.mark(r.Context(), &c); err != nil {
		return err
	}
	if c, err = s.crons.Create(r.Context(), c); err != nil {
		return err
	}
	s.due.note(c.Line())
	answer(w, http.StatusOK, shownCron(c))
	return nil
}

// mark makes a cron that of who asks for it: so are the threads of its runs.
func (s crons) mark(ctx context.Context, c *cron.Cron) error {
	g, err := granted(ctx, access.Resource{Kind: access.Crons, ID: c.ID, Metadata: c.Metadata})
	if err != nil {
		return err
	}
	if c.Metadata, err = g.Set(c.Metadata); err != nil {
		return err
	}
	if c.Marks, err = g.Set(nil); err != nil {
		return err
	}
	if who := by(ctx); who != "" {
		c.User = &who
	}
	return nil
}

// shownCron is a cron as clients see it.
func shownCron(c cron.Cron) cron.Cron {
	c.Marks = nil
	return c
}

// findsCron refuses a cron that is not there for the caller.
func findsCron(ctx context.Context, c cron.Cron) (access.Grant, error) {
	return mayFind(ctx, access.Resource{Kind: access.Crons, ID: c.ID, Metadata: c.Metadata})
}

func (s crons) getCron(w http.ResponseWriter, r *http.Request) error {
	id, err := idIn(r, "cron_id")
	if err != nil {
		return err
	}
	c, err := s.crons.Get(r.Context(), id)
	if err == nil {
		_, err = findsCron(r.Context(), c)
	}
	if err == nil {
		answer(w, http.StatusOK, shownCron(c))
	}
	return err
}

func (s crons) patchCron(w http.ResponseWriter, r *http.Request) error {
	id, err := idIn(r, "cron_id")
	if err != nil {
		return err
	}
	body, payload, err := readCron(w, r)
	if err == nil && len(payload) == 0 && body.changesNothing() {
		err = refuse(http.StatusBadRequest, "the body is empty: it says what is to be different")
	}
	if err != nil {
		return err
	}
	delete(payload, "assistant_id")
	c, err := s.crons.Update(r.Context(), id, func(c *cron.Cron) error {
		g, err := findsCron(r.Context(), *c)
		if err == nil {
			err = body.into(c)
		}
		if err == nil {
			c.Metadata, err = g.Set(c.Metadata)
		}
		if err != nil {
			return err
		}
		maps.Copy(c.Payload, payload)
		if body.Metadata != nil {
			c.Payload["metadata"] = raw(c.Metadata)
		}
		_, err = requestOf(*c)
		return err
	})
	if err == nil {
		answer(w, http.StatusOK, shownCron(c))
	}
	return err
}

func (s crons) deleteCron(w http.ResponseWriter, r *http.Request) error {
	id, err := idIn(r, "cron_id")
	if err != nil {
		return err
	}
	c, err := s.crons.Get(r.Context(), id)
	if err == nil {
		_, err = findsCron(r.Context(), c)
	}
	if err == nil {
		err = s.end(r.Context(), c)
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

func (s crons) end(ctx context.Context, c cron.Cron) error {
	if err := s.crons.Delete(ctx, c.ID); err != nil {
		return err
	}
	gone := c.Line()
	gone.Deleted = true
	s.due.note(gone)
	return nil
}

// endOf ends the crons of an assistant that is deleted.
func (s crons) endOf(ctx context.Context, a assistant.Assistant) error {
	lines, err := s.all(ctx)
	for _, l := range lines {
		if err != nil {
			break
		}
		if l.Assistant == a.ID {
			err = s.end(ctx, cron.Cron{ID: l.ID, Assistant: l.Assistant, Created: l.Created})
		}
		if errors.Is(err, cron.ErrMissing) {
			err = nil
		}
	}
	return err
}
