package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// healthTimeout bounds one health check; a healthy worker answers in milliseconds.
const healthTimeout = 3 * time.Second

func (a *app) healthcheckCommand() *cobra.Command {
	var addr string
	cmd := a.build(command{
		use: "healthcheck", short: "Ask a worker whether it is ready", group: groupOperate,
		about: `Exits 0 when the worker takes tasks, 1 when it starts, drains, has no server to take tasks from, or is not there.
Made for containers, whose images have nothing else to ask with. The worker needs --metrics-addr.`,
		example: []string{"healthcheck --addr 127.0.0.1:9090"},
		run: func(cmd *cobra.Command, _ []string) error {
			return a.healthcheck(cmd.Context(), addr)
		},
	})
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:9090", "the worker's --metrics-addr, `HOST:PORT`")
	return cmd
}

func (a *app) healthcheck(ctx context.Context, addr string) error {
	if host, port, err := net.SplitHostPort(addr); err != nil || port == "" {
		return usagef("--addr %s is not HOST:PORT", quoted(addr))
	} else if host == "" {
		addr = net.JoinHostPort("127.0.0.1", port)
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	state, healthy, err := askHealth(ctx, addr)
	if err != nil {
		return fmt.Errorf("no worker answers at %s: %w", addr, err)
	}
	if a.json() {
		if err := a.writeJSON(map[string]any{"state": state, "healthy": healthy}); err != nil {
			return err
		}
	} else {
		a.printf("%s\n", clean(state))
	}
	if !healthy {
		return statusExit(ExitFailed)
	}
	return nil
}

// askHealth returns the state that a worker reports.
func askHealth(ctx context.Context, addr string) (state string, healthy bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/healthz", nil)
	if err != nil {
		return "", false, err
	}
	// No proxy: the worker is in this container or next to it. No redirect: it has nowhere to send us.
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return "", false, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 256))
	if err != nil {
		return "", false, err
	}
	return strings.TrimSpace(string(body)), resp.StatusCode == http.StatusOK, nil
}
