package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"superstep.dev/examples/refund/payments"
)

const long = `payments is the outside world of the refund example: orders, refunds and
notifications over HTTP, in one SQLite file. Amounts are in cents.

  GET  /orders/{id}               an order; PUT creates one
  POST /refunds                   {"order_id":"o-7","amount":25000} and an Idempotency-Key header
  GET  /refunds?key=K             the refund made under a key, or 404
  GET  /refunds?order_id=o-7      the refunds of an order
  POST /refunds/{id}/reverse      take a refund back; Idempotency-Key
  POST /notifications             {"order_id":"o-7","text":"…"}; Idempotency-Key
  GET  /notifications?key=K       the notification made under a key, or 404
  GET  /stats                     requests, look-ups and commits; kept over restarts
  GET  /faults                    what is told to go wrong; PUT sets, DELETE clears
  GET  /healthz                   200 while the database answers

The same key with the same parameters returns the stored receipt (200, the
first time 201); with other parameters it is refused (422).

Faults: PUT /faults with any of
  {"path":"/refunds", "slow_ms":500, "fail_5xx":1, "die_after_commit":1, "hang_after_commit":1}
path is /refunds (default), /refunds/{id}/reverse or /notifications. The counts
are stored: a process that died of die_after_commit does not die again of it.

Under a name that is neither localhost nor given with --host it answers 403.

Orders o-1042 (250.00), o-7 (250.00) and o-11 (42.00) are there from the start.`

const example = `  payments --db payments.db
  payments --addr 127.0.0.1:0 --db /tmp/p.db --ready-file /tmp/p.addr
  curl -X PUT  localhost:8090/faults  -d '{"die_after_commit":1}'
  curl -X POST localhost:8090/refunds -d '{"order_id":"o-7","amount":100}' -H 'Idempotency-Key: k1'`

func command() *cobra.Command {
	var config serveConfig
	root := &cobra.Command{
		Use:           "payments",
		Short:         "The payments service of the refund example",
		Long:          long,
		Example:       example,
		Args:          cobra.NoArgs,
		SilenceErrors: true, // main prints them, in one line
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config.log = cmd.ErrOrStderr()
			return serve(cmd.Context(), config)
		},
	}
	root.Flags().StringVar(&config.addr, "addr", "127.0.0.1:8090", "`host:port` to listen on; port 0 picks a free one")
	root.Flags().StringVar(&config.db, "db", "payments.db", "SQLite `file`; made when it does not exist")
	root.Flags().StringArrayVar(&config.hosts, "host", nil, "a `name` under which it is called, beside localhost and IP addresses; may be repeated")
	root.Flags().StringVar(&config.readyFile, "ready-file", "", "`file` that holds the real host:port while the service serves")
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(healthcheck())
	return root
}

// healthcheck exists for container health checks: the image has no curl.
func healthcheck() *cobra.Command {
	var addr string
	var timeout time.Duration
	check := &cobra.Command{
		Use:   "healthcheck",
		Short: "Exit 0 when the service at --addr is healthy, else 1",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := payments.NewClient("http://" + addr)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			if err := client.Healthy(ctx); err != nil {
				return fmt.Errorf("payments at %s is not healthy: %w", addr, err)
			}
			return nil
		},
	}
	check.Flags().StringVar(&addr, "addr", "127.0.0.1:8090", "`host:port` of the service")
	check.Flags().DurationVar(&timeout, "timeout", 2*time.Second, "how long to wait for the answer")
	return check
}
