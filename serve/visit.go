package serve

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"superstep.dev/serve/access"
)

// visit is a request of somebody: who it is, and what the request does to each kind of thing.
type visit struct {
	who       access.Identity
	authorize access.Authorize
	does      map[access.Kind]access.Action
}

type visitKey struct{}

// visitIn is the visit that a context is of, nil where nobody was asked who they are: everything is granted then. What servers do by
// themselves is of none.
func visitIn(ctx context.Context) *visit {
	v, _ := ctx.Value(visitKey{}).(*visit)
	return v
}

// as is a context in which the caller does something else to things of a kind than the request says.
func as(ctx context.Context, kind access.Kind, do access.Action) context.Context {
	v := visitIn(ctx)
	if v == nil {
		return ctx
	}
	other := *v
	other.does = maps.Clone(v.does)
	other.does[kind] = do
	return context.WithValue(ctx, visitKey{}, &other)
}

// by is who asks, "" where nobody was asked who they are.
func by(ctx context.Context) string {
	if v := visitIn(ctx); v != nil {
		return v.who.Name
	}
	return ""
}

// granted is what the caller may do to something, by what the request does to things of that kind; what a request is not about is read.
func granted(ctx context.Context, on access.Resource) (access.Grant, error) {
	v := visitIn(ctx)
	if v == nil {
		return access.Grant{}, nil
	}
	do := v.does[on.Kind]
	if do == "" {
		do = access.Read
	}
	return v.authorize(ctx, v.who, do, on)
}

// mayFind refuses something that is there as if it were not, unless it is there for the caller.
func mayFind(ctx context.Context, on access.Resource) (access.Grant, error) {
	g, err := granted(ctx, on)
	if err != nil || g.Finds(on.Metadata) {
		return g, err
	}
	if v := visitIn(ctx); !on.System {
		err = refuse(http.StatusNotFound, "there is no %s %s", singular[on.Kind], on.ID)
	} else if do := v.does[on.Kind]; do != "" && do != access.Read {
		err = access.ErrForbidden // everybody knows that it is there
	}
	return g, err
}

var singular = map[access.Kind]string{access.Threads: "thread", access.Assistants: "assistant", access.Crons: "cron", access.Store: "item"}

// marked is metadata of something that the caller makes or changes, with what is set on that.
func marked(ctx context.Context, on access.Resource) (object, error) {
	g, err := granted(ctx, on)
	if err != nil {
		return nil, err
	}
	return g.Set(on.Metadata)
}

// errExpired ends the requests of somebody whose credential is good no more: clients send them again, with a new one.
var errExpired = errors.New("the credential is good no more")

// recheck is how often a credential is looked at again while a request is open.
const recheck = 15 * time.Second

// watched is a context that ends when the caller's credential is good no more.
func (s door) watched(r *http.Request, who access.Identity) (context.Context, func()) {
	ctx, end := context.WithCancelCause(r.Context())
	next := func() time.Duration {
		if who.Expires.IsZero() {
			return recheck
		}
		return max(0, min(recheck, time.Until(who.Expires)))
	}
	var mu sync.Mutex
	var over bool
	var timer *time.Timer
	look := func() {
		now, err := s.cfg.Authenticate(r)
		same := err == nil && now.Name == who.Name && slices.Equal(now.Permissions, who.Permissions)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case over:
		case !who.Expires.IsZero() && !time.Now().Before(who.Expires), err == nil && !same,
			errors.Is(err, access.ErrUnauthenticated), errors.Is(err, access.ErrNoCredential):
			end(errExpired)
		default:
			timer.Reset(max(next(), time.Second))
		}
	}
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(next(), look)
	return ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
		end(context.Canceled)
	}
}

// gone reports whether a request has ended because its caller has gone, and not because the caller has to prove anew who it is.
func gone(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), errExpired)
}

// visiting finds out who asks, and lets the request through in that name.
func (s door) visiting(r *http.Request, does map[access.Kind]access.Action) (*http.Request, func(), error) {
	if s.cfg.Authenticate == nil {
		return r, func() {}, nil
	}
	who, err := s.cfg.Authenticate(r)
	if err == nil {
		err = who.Check()
	}
	switch {
	case errors.Is(err, access.ErrNoCredential):
		return nil, nil, refuse(http.StatusUnauthorized, "say who you are: send a key as X-Api-Key, or a token as Authorization: Bearer")
	case errors.Is(err, access.ErrUnauthenticated):
		s.log.Infow("a request was refused", "path", r.URL.Path, "from", remote(r), "why", err)
		return nil, nil, refuse(http.StatusUnauthorized, "the key or token is not known here, or good no more")
	case err != nil:
		s.log.Errorw("it could not be found out who asks", "error", err)
		return nil, nil, refuse(http.StatusServiceUnavailable, "it cannot be found out who asks just now: try again")
	}
	ctx, leave := s.watched(r, who)
	return r.WithContext(context.WithValue(ctx, visitKey{}, &visit{who: who, authorize: s.cfg.Authorize, does: does})), leave, nil
}
