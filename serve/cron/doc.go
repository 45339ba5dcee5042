// Package cron keeps runs that are asked for again and again, as the agent server's protocol has them, as Temporal Schedules: each
// starts a small workflow on the task queue of the servers, which asks for the run as a caller would. Nothing is kept in a server, so
// what comes due while none is there is asked for when one is back.
package cron
