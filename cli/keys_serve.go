package cli

import (
	"context"
	"net"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev/cli/screen"
	"superstep.dev/thread/secret/endpoint"
)

// endpointFlags are the flags of keys serve.
type endpointFlags struct {
	addr, tokenFile string
	origins, hosts  []string
	ready           readyFile
}

func (a sealing) serveCommand() *cobra.Command {
	var f endpointFlags
	return a.build(command{
		name: "keys serve",
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&f.addr, "addr", "127.0.0.1:8234", "listen at `HOST:PORT`")
			flags.StringVar(&f.tokenFile, "token-file", "", "`FILE` with the token that requests carry; needed outside of this machine")
			flags.StringSliceVar(&f.origins, "origin", nil, "`URL` of a web UI whose pages may ask; may be repeated")
			flags.StringSliceVar(&f.hosts, "host", nil, "`NAME` under which the endpoint is asked from outside; may be repeated")
			flags.StringVar((*string)(&f.ready), "ready-file", "", "`FILE` to write the pid to while it listens")
		},
		run: func(ctx context.Context, _ []string) error { return a.serve(ctx, f) },
	})
}

// endpointEvent is what the endpoint tells programs.
type endpointEvent struct {
	Event string `json:"event"`
	PID   int    `json:"pid"`
	URL   string `json:"url"`
}

// handler is the endpoint that the flags describe.
func (a sealing) handler(f endpointFlags) (http.Handler, error) {
	host, port, err := net.SplitHostPort(f.addr)
	if err != nil || port == "" {
		return nil, usagef("--addr %s is not HOST:PORT", quoted(f.addr))
	}
	c := endpoint.Config{Origins: f.origins, Hosts: f.hosts}
	switch {
	case f.tokenFile != "":
		if c.Token, err = readSecretFile("--token-file", f.tokenFile, "token"); err != nil {
			return nil, err
		}
		a.secrets.Keep(c.Token)
	case !endpoint.Loopback(host):
		return nil, usagef("--addr %s is not of this machine alone, and there is no --token-file: everybody could read what is encrypted", quoted(f.addr))
	}
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		c.Hosts = append(c.Hosts, host)
	}
	a.sealed = a.tell
	keys, err := a.openKeys()
	if err != nil {
		return nil, err
	}
	if keys == nil {
		return nil, usagef("no keys are named: give --keys FILE or --keys-command COMMAND, or set %s", envKeys)
	}
	h, err := endpoint.Handler(keys.Codec(), c)
	if err != nil {
		return nil, wrongUse(err)
	}
	return h, nil
}

// serve answers until ctx ends.
func (a sealing) serve(ctx context.Context, f endpointFlags) error {
	h, err := a.handler(f)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", f.addr)
	if err != nil {
		return notBegun("--addr", err)
	}
	return serveUntil(ctx, endpoint.Server(h), listener, f.ready, func() {
		e := endpointEvent{Event: "ready", PID: os.Getpid(), URL: "http://" + listener.Addr().String()}
		a.ShowLine(e, func() { a.Printf("codec endpoint ready  %s  pid %d\n", screen.Clean(e.URL), e.PID) })
	})
}
