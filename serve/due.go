package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"

	"superstep.dev/serve/access"
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
	metadata := object{}
	if body, err := requestOf(c); err == nil { // else the run is refused, and says why
		metadata = body.ofThread()
	}
	maps.Copy(metadata, c.Marks)
	t, err := s.records.Create(ctx, thread, metadata, true)
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
			err = a.check(ctx, s.Server)
		}
		if err == nil {
			err = a.begin(ctx, s.Server, "")
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

func (s crons) all(ctx context.Context) ([]cron.Line, error) {
	return s.due.lines(ctx, s.crons.List, func(ctx context.Context, id string) (cron.Line, error) {
		c, err := s.crons.Get(ctx, id)
		return c.Line(), err
	})
}

// cronFilter says which crons are searched for.
type cronFilter struct {
	AssistantID string `json:"assistant_id" says:"uuid"`
	ThreadID    string `json:"thread_id" says:"uuid"`
	Metadata    object `json:"metadata"`
}

// cronCount is the body of a request to count: that of a search, without what a page is.
type cronCount cronFilter

type cronSearch struct {
	page
	cronFilter
	Enabled *bool `json:"enabled"`
}

// found are the crons that a search finds, in order.
func (s crons) found(r *http.Request, q cronSearch) ([]cron.Cron, error) {
	g, err := granted(r.Context(), access.Resource{Kind: access.Crons})
	if err != nil {
		return nil, err
	}
	lines, err := s.all(r.Context())
	if err != nil {
		return nil, err
	}
	for _, id := range []*string{&q.AssistantID, &q.ThreadID} {
		if *id == "" {
			continue
		}
		if *id, err = kept("id", *id); err != nil {
			return nil, err
		}
	}
	lines = slices.DeleteFunc(lines, func(l cron.Line) bool {
		return q.AssistantID != "" && l.Assistant != q.AssistantID || q.ThreadID != "" && l.Thread != q.ThreadID
	})
	if len(lines) > mostListed {
		return nil, refuse(http.StatusUnprocessableEntity, "a search looks at %d crons at most: narrow it by assistant_id or thread_id", mostListed)
	}
	out := []cron.Cron{}
	for _, l := range lines {
		c, err := s.crons.Get(r.Context(), l.ID)
		if errors.Is(err, cron.ErrMissing) {
			continue // ended by another server
		}
		if err != nil {
			return nil, err
		}
		if g.Finds(c.Metadata) && (q.Enabled == nil || c.Enabled == *q.Enabled) && (len(q.Metadata) == 0 || contains(raw(c.Metadata), raw(q.Metadata))) {
			out = append(out, shownCron(c))
		}
	}
	slices.SortFunc(out, q.order)
	return out, nil
}

// order sorts newest first unless it is asked otherwise; what never comes is last.
func (q *cronSearch) order(a, b cron.Cron) int {
	by := 0
	switch q.SortBy {
	case "cron_id":
		by = strings.Compare(a.ID, b.ID)
	case "assistant_id":
		by = strings.Compare(a.Assistant, b.Assistant)
	case "thread_id":
		by = strings.Compare(a.Line().Thread, b.Line().Thread)
	case "updated_at":
		by = a.Updated.Compare(b.Updated)
	case "next_run_date":
		by = compareTimes(a.Next, b.Next)
	case "end_time":
		by = compareTimes(a.EndTime, b.EndTime)
	}
	by = cmp.Or(by, a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
	if q.SortOrder == "asc" {
		return by
	}
	return -by
}

// compareTimes has none behind all others.
func compareTimes(a, b *time.Time) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return a.Compare(*b)
}

func (s crons) searchCrons(w http.ResponseWriter, r *http.Request) error {
	var q cronSearch
	err := read(w, r, &q)
	if err == nil {
		err = errors.Join(q.check("cron_id", "assistant_id", "thread_id", "created_at", "updated_at", "next_run_date", "end_time"), q.selects(of[cron.Cron](), "user_id", "now"))
	}
	if err != nil {
		return err
	}
	found, err := s.found(r, q)
	if err == nil {
		answer(w, http.StatusOK, selected(pageOf(w, q.page, found), q.Select))
	}
	return err
}

func (s crons) countCrons(w http.ResponseWriter, r *http.Request) error {
	var q cronCount
	if err := read(w, r, &q); err != nil {
		return err
	}
	found, err := s.found(r, cronSearch{cronFilter: cronFilter(q)})
	if err == nil {
		answer(w, http.StatusOK, len(found))
	}
	return err
}
