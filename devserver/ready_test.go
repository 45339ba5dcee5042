package main_test

import (
	"database/sql"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/durationpb"
	_ "modernc.org/sqlite"
)

// What a script relies on once the ready file is there.
func TestReadyMeansUsable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, ready := filepath.Join(dir, "runs.db"), filepath.Join(dir, "ready")
	require.NoError(t, os.WriteFile(ready, []byte("left behind by a kill"), 0o600))

	s := start(t, db, "--ready-file", ready)
	content, err := os.ReadFile(ready)
	require.NoError(t, err)
	require.Equal(t, s.address, string(content))
	require.Contains(t, s.line, "   db "+db)

	requireNamespace(t, dial(t, s.address))
	require.Equal(t, "wal", pragma(t, db, "journal_mode"))

	page := get(t, s.ui)
	require.Contains(t, strings.ToLower(page), "<!doctype html>")
	require.Contains(t, get(t, s.ui+"/api/v1/namespaces"), `"default"`, "the Web UI reaches the server")

	require.Zero(t, s.stop(t))
	require.NoFileExists(t, ready)
	require.Empty(t, s.stderr.String(), "a start and a stop leave the terminal clean")
	log, err := os.Stat(db + "-wal")
	if err == nil {
		require.Zero(t, log.Size(), "after a clean stop the database file alone is whole")
	}
}

func TestHeadlessServesNoWebUI(t *testing.T) {
	t.Parallel()
	s := start(t, ":memory:", "--headless")
	require.Empty(t, s.ui)
	require.NotContains(t, s.line, "web UI")
	require.Zero(t, s.stop(t))
}

func TestInMemoryLeavesNoFile(t *testing.T) {
	t.Parallel()
	s := start(t, ":memory:", "--stock")
	require.Contains(t, s.line, "stock settings")
	files, err := os.ReadDir(s.cmd.Dir)
	require.NoError(t, err)
	require.Empty(t, files)
	require.Zero(t, s.stop(t))
}

// Every interface: listening there, dialled at loopback.
func TestReadyFileHoldsAnAddressToDial(t *testing.T) {
	t.Parallel()
	ready := filepath.Join(t.TempDir(), "ready")
	s := start(t, ":memory:", "--headless", "--ip", "0.0.0.0", "--ready-file", ready)
	content, err := os.ReadFile(ready)
	require.NoError(t, err)
	require.Equal(t, strings.Replace(s.address, "0.0.0.0", "127.0.0.1", 1), string(content))
	dial(t, string(content))
	require.Zero(t, s.stop(t))
}

// A first start that ends in the middle, in an orderly way or not, leaves nothing
// half done.
func TestEndsBeforeReady(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, p *process){
		"stopped": func(t *testing.T, p *process) { t.Helper(); require.Zero(t, p.stop(t)) },
		"killed":  func(t *testing.T, p *process) { t.Helper(); p.kill(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := filepath.Join(t.TempDir(), "runs.db")
			p := launch(t, "--db", db, "--port", "0", "--headless")
			// The log appears with the first table, long before the server is up.
			require.Eventually(t, func() bool {
				_, err := os.Stat(db + "-wal")
				return err == nil
			}, startTimeout, time.Millisecond)
			end(t, p)
			require.Zero(t, start(t, db, "--headless").stop(t))
		})
	}
}

// A database in which the namespace is not what runs need, such as one that
// Temporal's own development server made.
func TestRepairsNamespace(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "runs.db")
	ctx := within(t, 10*time.Minute)
	s := start(t, db, "--headless")
	c := dial(t, s.address)
	_, err := c.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: "default",
		Config:    &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(24 * time.Hour)},
	})
	require.NoError(t, err)
	_, err = c.OperatorService().RemoveSearchAttributes(ctx, &operatorservice.RemoveSearchAttributesRequest{
		Namespace:        "default",
		SearchAttributes: []string{"SuperstepNodes", "SuperstepParent", "SuperstepDue"},
	})
	require.NoError(t, err)
	require.Zero(t, s.stop(t))

	s = start(t, db, "--headless")
	repaired := dial(t, s.address)
	requireNamespace(t, repaired)
	_, err = repaired.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: "nobody", TypedSearchAttributes: temporal.NewSearchAttributes(
		temporal.NewSearchAttributeKeyKeyword("SuperstepParent").ValueSet("job-1"))}, "nothing")
	require.NoError(t, err, "the server is ready and does not take an attribute that it has added")
	require.Zero(t, s.stop(t))

	// On stock settings, what was added takes longer to be known.
	s = start(t, db, "--headless", "--stock")
	requireNamespace(t, dial(t, s.address))
	require.Zero(t, s.stop(t))
}

// A path may hold what means something in an SQLite URI, and be a link.
func TestDatabasePathIsTakenLiterally(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "100% #1?.db")
	require.Zero(t, start(t, db, "--headless").stop(t))
	require.FileExists(t, db)

	link := filepath.Join(dir, "link.db")
	require.NoError(t, os.Symlink(db, link))
	s := start(t, link, "--headless")
	refused := launch(t, "--db", db, "--port", "0", "--headless")
	requireRefused(t, refused, "in use by another devserver (process ")
	require.Zero(t, s.stop(t))
}

// requireNamespace checks what the design promises about the namespace.
func requireNamespace(t *testing.T, c client.Client) {
	t.Helper()
	ctx := within(t, startTimeout)
	described, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: "default"})
	require.NoError(t, err)
	require.Equal(t, 720*time.Hour, described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration())

	listed, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: "default"})
	require.NoError(t, err)
	require.Equal(t, map[string]enumspb.IndexedValueType{
		"SuperstepGraph":     enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"SuperstepStatus":    enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"SuperstepNodes":     enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST,
		"SuperstepQuestions": enumspb.INDEXED_VALUE_TYPE_INT,
		"SuperstepParent":    enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"SuperstepApprovers": enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST,
		"SuperstepDue":       enumspb.INDEXED_VALUE_TYPE_DATETIME,
		"SuperstepRisk":      enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	}, listed.GetCustomAttributes())
}

// pragma reads a setting that the database file itself remembers.
func pragma(t *testing.T, db, name string) string {
	t.Helper()
	var value string
	require.NoError(t, opened(t, db).QueryRow("PRAGMA "+name).Scan(&value))
	return value
}

// opened is a database file, to be read until the test ends.
func opened(t *testing.T, db string) *sql.DB {
	t.Helper()
	conn, err := sql.Open("sqlite", "file:"+(&url.URL{Path: db}).EscapedPath()+"?mode=ro")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return conn
}

func get(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(within(t, startTimeout), http.MethodGet, address, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", body)
	return string(body)
}
