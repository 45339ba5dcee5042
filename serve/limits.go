package serve

import (
	"cmp"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jellydator/ttlcache/v3"
	"golang.org/x/time/rate"
)

// Limits bound what callers may ask. A caller is who was authenticated; where nobody is, it is an address. A request beyond a limit is
// answered with 429 or, when the server is full, with 503; clients of the protocol try again.
type Limits struct {
	// Rate is how many requests a second a caller may send, and Burst how many at once beyond that. 0 is 100 and 400 for callers that are
	// authenticated, and no limit for others; a Rate below 0 is none.
	Rate  float64
	Burst int
	// Open is how many requests of a caller may be open at once, streams above all: 0 is 1,000 for callers that are authenticated, and
	// 4,000 for others. OpenAll is how many of all callers, 0 for 5,000.
	Open, OpenAll int
	// Body is how long the body of a request may take to come, 0 for 30 seconds.
	Body time.Duration
}

func (l Limits) or(authenticated bool) Limits {
	if authenticated {
		l.Rate, l.Burst, l.Open = cmp.Or(l.Rate, 100), cmp.Or(l.Burst, 400), cmp.Or(l.Open, 1000)
	}
	l.Open, l.OpenAll, l.Body = cmp.Or(l.Open, 4000), cmp.Or(l.OpenAll, 5000), cmp.Or(l.Body, 30*time.Second)
	return l
}

// callers counts what callers ask. It forgets who asks nothing for a while, and of too many the one who asked least lately.
type callers struct {
	limits Limits
	known  *ttlcache.Cache[string, *caller]
	open   atomic.Int64
}

type caller struct {
	rate *rate.Limiter
	open atomic.Int64
}

const (
	mostCallers  = 50_000
	callerMemory = 10 * time.Minute
)

func newCallers(l Limits) *callers {
	return &callers{limits: l, known: ttlcache.New(ttlcache.WithTTL[string, *caller](callerMemory), ttlcache.WithCapacity[string, *caller](mostCallers))}
}

// enter lets a request in while the server is not full. leave must be called once, when there is no error.
func (c *callers) enter() (leave func(), err error) {
	if c.open.Add(1) > int64(c.limits.OpenAll) {
		c.open.Add(-1)
		return nil, refuse(http.StatusServiceUnavailable, "%d requests are open: try again", c.limits.OpenAll)
	}
	return func() { c.open.Add(-1) }, nil
}

// of lets a request of a caller through. leave must be called once, when there is no error.
func (c *callers) of(name string) (leave func(), err error) {
	item, _ := c.known.GetOrSetFunc(name, func() *caller {
		limit := rate.Inf
		if c.limits.Rate > 0 {
			limit = rate.Limit(c.limits.Rate)
		}
		return &caller{rate: rate.NewLimiter(limit, max(1, c.limits.Burst))}
	})
	one := item.Value()
	if !one.rate.Allow() {
		return nil, refuse(http.StatusTooManyRequests, "more than %v requests a second: slow down", c.limits.Rate)
	}
	if one.open.Add(1) > int64(c.limits.Open) {
		one.open.Add(-1)
		return nil, refuse(http.StatusTooManyRequests, "%d of your requests are open: close some", c.limits.Open)
	}
	return func() { one.open.Add(-1) }, nil
}

// remote is the address that a request comes from.
func remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
