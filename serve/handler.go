package serve

import (
	"cmp"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.uber.org/zap"
	"superstep.dev"
	"superstep.dev/serve/access"
	"superstep.dev/serve/assistant"
	"superstep.dev/serve/cron"
	"superstep.dev/serve/record"
	"superstep.dev/thread"
)

// Handler returns a server over a client. Close it when it serves no more.
//
// Errors: thread.ErrBadInput without Config.Temporal, and for an Authorize without an Authenticate; those of a Temporal worker that
// cannot begin.
func Handler(c *superstep.Client, cfg Config) (*Server, error) {
	if c == nil || cfg.Temporal == nil {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Message: "a server needs a Client, and the Temporal client that it was made with"}
	}
	if cfg.Authorize != nil && cfg.Authenticate == nil {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Message: "an Authorize needs an Authenticate: it says what somebody may do"}
	}
	if cfg.Authorize == nil {
		cfg.Authorize = access.Own
	}
	cfg.TaskQueue, cfg.Namespace = cmp.Or(cfg.TaskQueue, superstep.DefaultTaskQueue), cmp.Or(cfg.Namespace, client.DefaultNamespace)
	s := &Server{client: c, cfg: cfg, mux: http.NewServeMux(), log: cmp.Or(cfg.Logger, zap.NewNop()).Sugar(), specs: map[string]specKept{}}
	s.callers = newCallers(cfg.Limits.or(cfg.Authenticate != nil))
	queue := cfg.TaskQueue + ".serve"
	if cfg.DataConverter == nil {
		cfg.DataConverter = converter.GetDefaultDataConverter()
	}
	s.worker = worker.New(cfg.Temporal, queue, worker.Options{DisableRegistrationAliasing: true})
	s.records = record.New(cfg.Temporal, c, s.worker, record.Config{Namespace: cfg.Namespace, TaskQueue: queue,
		DataConverter: cfg.DataConverter, Webhooks: webhooks(cfg.WebhooksAnywhere), Shown: s.valuesOf})
	assistant.Register(s.worker)
	s.kept = assistant.Store{Temporal: cfg.Temporal, Namespace: cfg.Namespace, TaskQueue: queue, DataConverter: cfg.DataConverter}
	cron.Register(s.worker, crons{s})
	s.crons = cron.Store{Temporal: cfg.Temporal, TaskQueue: queue, DataConverter: cfg.DataConverter}
	s.handle()
	return s, s.worker.Start()
}

// handle makes the server answer all paths.
func (s *Server) handle() {
	for _, r := range s.routes() {
		s.mux.HandleFunc(r.pattern(), s.handling(contracts[r.pattern()], r.do))
	}
	s.mux.HandleFunc("/", s.handling(contract{open: true}, func(w http.ResponseWriter, r *http.Request) error {
		if r.Method == http.MethodGet && r.URL.Path == "/" { // what watches over servers asks here too
			return meta{s}.ok(w, r)
		}
		return refuse(http.StatusNotFound, "there is no such path")
	}))
}

// routes are all paths.
func (s *Server) routes() []route {
	return slices.Concat(meta{s}.routes(), assistants{s}.routes(), s.threadRoutes(), s.stateRoutes(), s.runRoutes(), crons{s}.routes(), memories{s}.routes(), commands{s}.routes(), s.streamRoutes())
}

// notPublic are the networks that are nobody's on the internet, beside those that netip tells of. An address that stands for one of IPv4
// leads a gateway to that one, wherever it is: clouds keep credentials behind addresses of theirs.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("fec0::/10"),
}

// public reports whether an address is one of the internet's.
func public(ip netip.Addr) bool {
	ip = ip.Unmap()
	return ip.Zone() == "" && ip.IsGlobalUnicast() && !ip.IsPrivate() && !slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// webhooks returns what posts to addresses that callers give: it follows no redirect, and unless anywhere reaches no address of a
// private network or of this machine.
func webhooks(anywhere bool) *http.Client {
	dial := &net.Dialer{Timeout: 5 * time.Second}
	if !anywhere {
		dial.Control = func(_, address string, _ syscall.RawConn) error {
			host, _, err := net.SplitHostPort(address)
			ip, bad := netip.ParseAddr(host)
			if err != nil || bad != nil || !public(ip) {
				return errors.New("webhooks do not go to private addresses")
			}
			return nil
		}
	}
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DialContext: dial.DialContext, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
