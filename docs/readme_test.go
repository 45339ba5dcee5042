package docs_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/internal/testserver"
	"superstep.dev/test/processes"
	"superstep.dev/test/processes/stack"
)

// commands returns the shell commands that a document tells its readers to run, without their comments.
func commands(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var out []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			command, _, _ := strings.Cut(line, "  #")
			if command = strings.TrimSpace(command); command != "" {
				out = append(out, command)
			}
		}
	}
	for _, inline := range regexp.MustCompile("`((?:go run|make|sh) [^`]+)`").FindAllStringSubmatch(string(text), -1) {
		out = append(out, inline[1])
	}
	return out
}

// elsewhere are the documented commands that other tests run, with the file that does.
var elsewhere = map[string]string{
	"go run ./examples/desk/cmd":             "../test/wire/page_test.go",
	"go run ./examples/wire":                 "../test/wire/page_test.go",
	"go run ./examples/refund/demo":          "../examples/refund/demo/main_test.go",
	"go run ./examples/research/cmd":         "../examples/research/demo/main_test.go",
	"make demo":                              "../examples/refund/demo/main_test.go",
	"make demo-research":                     "../examples/research/demo/main_test.go",
	"make dev":                               "../examples/refund/dev/main_test.go",
	"make chat":                              "../examples/chat/dev/main_test.go",
	"make chat ORIGIN=http://localhost:3000": "../examples/chat/dev/main_test.go",
	"make test":                              "../.ci/run",
	"make build":                             "../.ci/run",
	"go run ./test/run -- go test ./test/thread -run TestEvents": "../Makefile",
	"go test ./internal/house -update":                           "../internal/house/excess_test.go",
	"make verify":                                                "../.ci/run",
	"make bench":                                                 "../test/bench/engine_test.go",
	"make peers LANGGRAPH=lg/bin/python LANGGRAPHJS=lgjs":        "../test/bench/peers/run_test.go",
	"go run ./test/bench/peers --help":                           "../test/bench/peers/peers_test.go",
	"make chaos":                                                 "../test/chaos/chaos_test.go",
	"make interop":                                               "../.ci/run",
	"make soak":                                                  "../test/soak/soak_test.go",
	"go run ./devserver":                                         "../devserver/process_test.go",
	"go run ./test/conformance":                                  "../test/conformance/conformance_test.go",
	"go run ./test/conformance -durability exit":                 "../test/conformance/conformance_test.go",
	"go run ./test/conformance/recorder -version V test/conformance/testdata":  "../test/conformance/recorder/recorder_test.go",
	"go run ./test/conformance/recorder test/conformance/testdata/cases":       "../test/conformance/recorder/recorder_test.go",
	`superstep run refund --thread r-7 --input '{"order_id":"o-1042"}' --hold`: "../test/e2e/pauses_test.go",
	`superstep pause r-7 --reason "the books are closed" --by ann`:             "../test/e2e/pauses_test.go",
	"superstep unpause r-7":                                 "../test/e2e/pauses_test.go",
	`superstep event r-7 paid --value '"in full"' --id e-1`: "../test/e2e/pauses_test.go",
	"superstep retry r-7":                                   "../test/e2e/pauses_test.go",
	`superstep run agent --thread r-7 --input '{"messages":[{"role":"user","content":"Order bolts."}]}' --budget tokens=10000,money=2.5USD,writes=3,time=10m,supersteps=100`: "../test/e2e/budgets_test.go",
	`superstep resume r-7 budget-1 --value '{"tokens": 5000}'`:                                                                         "../test/e2e/budgets_test.go",
	`superstep resume r-7 budget-2 --value '{"stop": true}'`:                                                                           "../test/e2e/budgets_test.go",
	"superstep list --status waiting_event":                                                                                            "../test/e2e/pauses_test.go",
	`superstep run refund --thread r-7 --input '{"order_id":"o-1042"}' --requester rita --follow`:                                      "../test/e2e/approvals_test.go",
	`superstep run refund --thread r-7 --input '{"order_id":"o-1042"}' --follow`:                                                       "../test/e2e/traces_test.go",
	`superstep inbox --graph refund --limit 1000`:                                                                                      "../test/e2e/approvals_test.go",
	`superstep signing-key audit --worker`:                                                                                             "../test/e2e/approvals_test.go",
	`REFUND_APPROVALS=1 go run ./worker --approval-keys ana.pem --approval-rules examples/refund/approvals.yaml --audit-key audit.key`: "../test/e2e/approvals_test.go",
	`superstep signing-key ana`:                                                                                                        "../test/e2e/approvals_test.go",
	`superstep question r-7 q-41c9`:                                                                                                    "../test/e2e/approvals_test.go",
	`superstep token r-7 q-41c9 --ttl 2m --key ana.key`:                                                                                "../test/e2e/approvals_test.go",
	`superstep approve r-7 q-41c9 --key ana.key`:                                                                                       "../test/e2e/approvals_test.go",
	`superstep reject r-7 q-41c9 --key ana.key --reason "wrong order"`:                                                                 "../test/e2e/approvals_test.go",
	`superstep edit r-7 q-41c9 --params '{"order_id":"o-1042","amount":20000}' --key ana.key`:                                          "../test/e2e/approvals_test.go",
	`superstep token r-7 --op unpause --for ana --key ana.key`:                                                                         "../test/e2e/control_test.go",
	`superstep audit r-7 --head`:                                                                                                       "../test/e2e/approvals_test.go",
	`superstep audit r-7 --export audit.jsonl`:                                                                                         "../test/e2e/approvals_test.go",
	`superstep audit --verify audit.jsonl --public-keys audit.pem`:                                                                     "../test/e2e/approvals_test.go",
	`superstep job submit --leader research --id r-3 --goal "Which penguins are heaviest?" --context "Weights are in grams." --approve first`: "../test/e2e/jobs_test.go",
	`superstep job show r-3 --follow`:                                                                 "../test/e2e/jobs_test.go",
	`superstep job plan r-3`:                                                                          "../test/e2e/jobs_test.go",
	`superstep job plan r-3 --edit @plan.json --version 1`:                                            "../test/e2e/jobs_test.go",
	`superstep job stop r-3 --reason "the data is wrong"`:                                             "../test/e2e/jobs_test.go",
	`superstep job recover r-3 --lesson "use the new file"`:                                           "../test/e2e/jobs_test.go",
	`superstep job budget r-3 --attempts 10`:                                                          "../test/e2e/jobs_test.go",
	`superstep job experts r-3`:                                                                       "../test/e2e/jobs_test.go",
	`superstep job retry r-3 p1-load --lesson "drop the empty rows"`:                                  "../test/e2e/jobs_steer_test.go",
	`superstep job experts r-3 --remove critic`:                                                       "../test/e2e/jobs_steer_test.go",
	`superstep job list --leader research --status running`:                                           "../test/e2e/jobs_steer_test.go",
	`superstep job answer r-3`:                                                                        "../test/e2e/jobs_test.go",
	`superstep job list --leader research`:                                                            "../test/e2e/jobs_test.go",
	"superstep serve":                                                                                 "../test/serve/serve_test.go",
	`superstep checkpoint r-7 -o json`:                                                                "../test/e2e/erase_test.go",
	`superstep erase r-7 --yes --audit keep --audit-dir audits`:                                       "../test/e2e/erase_test.go",
	`superstep erase r-7 --yes --cancel --reason "asked by the customer"`:                             "../test/e2e/erase_test.go",
	`superstep erase r-7 --yes --archive archives`:                                                    "../test/e2e/prune_test.go",
	`superstep erase job/r-3 --yes -o json`:                                                           "../test/e2e/jobs_test.go",
	`superstep prune --older-than 30d`:                                                                "../test/e2e/prune_test.go",
	`superstep prune --older-than 30d --archive archives --yes`:                                       "../test/e2e/prune_test.go",
	`superstep show r-7 --archive archives`:                                                           "../test/e2e/prune_test.go",
	`superstep history r-7 --archive archives`:                                                        "../test/e2e/prune_test.go",
	`superstep job show r-3 --archive archives`:                                                       "../test/e2e/prune_test.go",
	"go run ./devserver vacuum --db superstep.db":                                                     "../devserver/vacuum_test.go",
	"superstep keys new --keys prod.keys --id prod-1":                                                 "../test/e2e/keys_test.go",
	"superstep keys list --keys prod.keys":                                                            "../test/e2e/keys_test.go",
	"superstep keys rotate --keys prod.keys --in 0s --id prod-2":                                      "../test/e2e/keys_test.go",
	"superstep keys rotate --keys prod.keys --drop prod-1":                                            "../test/e2e/keys_test.go",
	"superstep keys rotate --keys prod.keys --drop prod-1 --yes":                                      "../test/e2e/keys_test.go",
	"superstep keys serve --keys prod.keys --origin http://localhost:8233":                            "../test/e2e/keys_test.go",
	`superstep store put users.42 preferences --value '{"city":"Berlin","age":33}'`:                   "../test/e2e/store_test.go",
	`superstep store get users.42 preferences`:                                                        "../test/e2e/store_test.go",
	`superstep store search users --filter '{"city":"Berlin","age":{"$gte":18}}'`:                     "../test/e2e/store_test.go",
	`superstep store namespaces --prefix "users.*"`:                                                   "../test/e2e/store_test.go",
	`superstep store delete users.42 preferences`:                                                     "../test/e2e/store_test.go",
	"sh deploy/create-secret.sh && docker compose up":                                                 "../deploy/compose_test.go",
	"superstep serve keys new ann --client-keys clients.keys":                                         "../test/serve/access_test.go",
	"superstep serve keys new operator --client-keys clients.keys --admin":                            "../test/serve/access_test.go",
	"superstep serve --listen 0.0.0.0:2024 --host-name agents.example.com --client-keys clients.keys": "../test/serve/access_test.go",
	"superstep serve --listen 0.0.0.0:2024 --host-name agents.example.com --jwt-issuer https://id.example.com --jwt-audience agents": "../test/serve/access_test.go",
}

// TestEveryCommandIsRun fails when a document names a command that nothing runs.
func TestEveryCommandIsRun(t *testing.T) {
	documents, err := filepath.Glob("*.md")
	require.NoError(t, err)
	for _, document := range append(documents, "../README.md", "../CONTRIBUTING.md", "../examples/chat/README.md") {
		for _, command := range commands(t, document) {
			if strings.HasPrefix(command, "go run ./test/conformance test/conformance/testdata") {
				command = "go run ./test/conformance"
			}
			if by, ok := elsewhere[command]; ok {
				_, err := os.Stat(by)
				require.NoError(t, err, "%s: %q is said to be run by %s", document, command, by)
				continue
			}
			require.Contains(t, firstSteps(t), command, "%s: nothing runs this command", document)
		}
	}
}

// firstSteps are the README's commands on the example: a server, the payments service, a worker, and a run.
func firstSteps(t *testing.T) []string {
	var out []string
	for _, command := range commands(t, "../README.md") {
		if strings.HasPrefix(command, "go run ./examples") || strings.HasPrefix(command, "go run ./worker") ||
			strings.HasPrefix(command, "go run ./starter") || strings.HasPrefix(command, "go run ./cmd/superstep") {
			out = append(out, command)
		}
	}
	return out
}

// TestFirstSteps runs the README's commands as they stand, on free ports: the addresses come from the environment.
func TestFirstSteps(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs all that the README names")
	}
	steps := firstSteps(t)
	require.Len(t, steps, 13)
	address := testserver.Start(t, testserver.Options{}).Address() // its own: the README's thread ids are anybody's
	dir := t.TempDir()
	set, ctx, err := processes.New(t.Context(), filepath.Join(dir, "logs"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, set.Stop()) })
	root, err := stack.Root(ctx)
	require.NoError(t, err)

	payments := filepath.Join(dir, "payments")
	background(t, ctx, set, root, steps[0], nil, payments, "--addr", "127.0.0.1:0", "--db", filepath.Join(dir, "p.db"), "--ready-file", payments)
	at, err := os.ReadFile(payments)
	require.NoError(t, err)
	env := []string{"TEMPORAL_ADDRESS=" + address, "PAYMENTS_URL=http://" + strings.TrimSpace(string(at))}
	queue := testserver.Queue(t)
	worker := filepath.Join(dir, "worker")
	background(t, ctx, set, root, steps[1], env, worker, "--task-queue", queue, "--ready-file", worker)

	checkpoint := "CHECKPOINT"
	for i, want := range []struct {
		output string
		exit   int
	}{
		{"WAITING", 3}, {"finished", 0}, {"CHECKPOINT", 0},
		{"WAITING", 3}, {"next  approval", 0}, {"next  commit_refund", 0}, {"finished", 0}, {"update", 0},
		{"finished", 0}, {"notify", 0}, {"nothing to drain", 0},
	} {
		step := strings.Replace(steps[2+i], "CHECKPOINT", checkpoint, 1)
		output, exit := run(t, root, step, append(env, "QUEUE="+queue))
		require.Equal(t, want.exit, exit, "%s\n%s", step, output)
		require.Contains(t, output, want.output, step)
		if m := regexp.MustCompile(`Next: .* fork \S+ (\S+)`).FindStringSubmatch(output); m != nil {
			checkpoint = m[1] // the one that the history proposes
		}
	}
}

// background starts a documented command that stays up: the program that go run would build, with the arguments that
// are documented and those that keep this test from using the usual ports.
func background(t *testing.T, ctx context.Context, set *processes.Set, root, command string, env []string, ready string, more ...string) {
	t.Helper()
	words := strings.Fields(command)
	program := filepath.Join(t.TempDir(), "program")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, words[2])
	build.Dir = root
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	_, err = set.Start(ctx, processes.Command{Name: filepath.Base(words[2]), Path: program, Args: append(words[3:], more...),
		Env: append(os.Environ(), env...), Dir: root, ReadyFile: ready})
	require.NoError(t, err)
}

// run runs a documented command in a shell, on the test's task queue.
func run(t *testing.T, root, command string, env []string) (output string, exit int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", regexp.MustCompile(`^go run \S+`).ReplaceAllString(command, `$0 --task-queue "$$QUEUE"`))
	cmd.Dir, cmd.Env = root, append(os.Environ(), env...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	_ = cmd.Run() // the exit code says it all
	// go run reports the program's own code in its last line.
	if m := regexp.MustCompile(`exit status (\d+)`).FindStringSubmatch(text.String()); m != nil {
		for _, digit := range m[1] {
			exit = exit*10 + int(digit-'0')
		}
		return text.String(), exit
	}
	return text.String(), cmd.ProcessState.ExitCode()
}
