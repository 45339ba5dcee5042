package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScriptsParse(t *testing.T) {
	scripts, err := filepath.Glob("*.sh")
	require.NoError(t, err)
	require.Len(t, scripts, 5)
	for _, script := range scripts {
		out, err := exec.Command("sh", "-n", script).CombinedOutput()
		require.NoError(t, err, "%s: %s", script, out)
	}
}

// Every script that a service runs is mounted there, and exists.
func TestScriptsAreMounted(t *testing.T) {
	loaded := project(t)
	for _, name := range []string{"temporal-schema", "temporal", "temporal-namespace"} {
		service := loaded.Services[name]
		mounted := map[string]bool{}
		for _, config := range service.Configs {
			require.FileExists(t, loaded.Configs[config.Source].File)
			require.Equal(t, filepath.Base(config.Target), filepath.Base(loaded.Configs[config.Source].File))
			mounted[config.Target] = true
		}
		require.Equal(t, "/bin/sh", service.Entrypoint[0])
		require.True(t, mounted[service.Entrypoint[1]], "%s runs %s", name, service.Entrypoint[1])
		require.Equal(t, len(service.Secrets) > 0, mounted["/etc/superstep/postgres-password.sh"], name)
	}
}

// shell runs one of our scripts with stand-ins for the programs it calls first
// on its PATH, and the variables given.
func shell(t *testing.T, script, stubs string, env ...string) (string, error) {
	t.Helper()
	path := os.Getenv("PATH")
	if stubs != "" {
		path = stubs + string(os.PathListSeparator) + path
	}
	run := exec.Command("sh", script)
	run.Env = append([]string{"PATH=" + path, "SUPERSTEP_SCRIPTS=."}, env...)
	out, err := run.CombinedOutput()
	return string(out), err
}

func stub(t *testing.T, dir, name, script string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755))
}

func TestCreateSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secrets", "password")
	_, err := shell(t, "create-secret.sh", "", "POSTGRES_PASSWORD_FILE="+file)
	require.NoError(t, err)
	password, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Regexp(t, `^[0-9a-f]{48}$`, string(password))
	info, err := os.Stat(filepath.Dir(file))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), "nobody else reaches the file")
	info, err = os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o444), info.Mode().Perm(), "services of any uid read it")

	out, err := shell(t, "create-secret.sh", "", "POSTGRES_PASSWORD_FILE="+file)
	require.NoError(t, err)
	require.Contains(t, out, "kept")
	again, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, password, again, "the database keeps the password it was created with")
}

func TestSchemaScript(t *testing.T) {
	dir := t.TempDir()
	stub(t, dir, "temporal-sql-tool", `echo "$SQL_PLUGIN $SQL_USER@$SQL_HOST:$SQL_PORT password=$SQL_PASSWORD $*"`)
	secret := filepath.Join(dir, "password")
	require.NoError(t, os.WriteFile(secret, []byte("p4ss\n"), 0o600))
	env := []string{"POSTGRES_PASSWORD_FILE=" + secret, "SQL_HOST=pg", "SQL_PORT=5432", "SQL_USER=temporal"}
	out, err := shell(t, "temporal-schema.sh", dir, env...)
	require.NoError(t, err, out)
	var calls []string
	for line := range strings.Lines(out) {
		if call, ok := strings.CutPrefix(strings.TrimSpace(line), "postgres12 temporal@pg:5432 password=p4ss "); ok {
			calls = append(calls, call)
		}
	}
	const schemas = "/etc/temporal/schema/postgresql/v12"
	require.Equal(t, []string{
		"--database temporal create-database",
		"--database temporal setup-schema --version 0.0",
		"--database temporal update-schema --schema-dir " + schemas + "/temporal/versioned",
		"--database temporal_visibility create-database",
		"--database temporal_visibility setup-schema --version 0.0",
		"--database temporal_visibility update-schema --schema-dir " + schemas + "/visibility/versioned",
	}, calls)

	stub(t, dir, "temporal-sql-tool", "exit 1")
	_, err = shell(t, "temporal-schema.sh", dir, env...)
	require.Error(t, err, "a failed step must keep the server from starting")
}

func TestPasswordIsChecked(t *testing.T) {
	for content, want := range map[string]string{"": "empty", `a"b`: "may hold only", "a\nb": "may hold only"} {
		secret := filepath.Join(t.TempDir(), "password")
		require.NoError(t, os.WriteFile(secret, []byte(content), 0o600))
		out, err := shell(t, "postgres-password.sh", "", "POSTGRES_PASSWORD_FILE="+secret)
		require.Error(t, err)
		require.Contains(t, out, want)
		if content != "" {
			require.NotContains(t, out, content)
		}
	}
	out, err := shell(t, "postgres-password.sh", "", "POSTGRES_PASSWORD_FILE=/nonexistent")
	require.Error(t, err)
	require.Contains(t, out, "sh deploy/create-secret.sh", "says how to make it")
}

// A server that answers at the third attempt, and knows nothing yet.
const patientServer = `
echo "$*" >>"$CALLS"
case "$2 $3" in
"cluster health") [ "$(grep -c 'cluster health' "$CALLS")" -ge 3 ] ;;
"namespace describe") grep -q "namespace create" "$CALLS" ;;
"search-attribute list") sed -n 's/.*attribute create --name \([A-Za-z]*\) --type \([A-Za-z]*\).*/  \1  \2/p' "$CALLS" ;;
esac
`

func TestNamespaceScript(t *testing.T) {
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	stub(t, dir, "temporal", patientServer)
	stub(t, dir, "sleep", "")
	env := []string{"CALLS=" + calls, "TEMPORAL_ADDRESS=temporal:7233", "TEMPORAL_NAMESPACE=refunds"}
	out, err := shell(t, "temporal-namespace.sh", dir, env...)
	require.NoError(t, err, out)
	made, err := os.ReadFile(calls)
	require.NoError(t, err)
	const where = " --address temporal:7233 --namespace refunds\n"
	require.Contains(t, string(made), "operator namespace create --retention 720h --description Runs of Superstep"+where)
	for name, kind := range map[string]string{
		"SuperstepGraph": "Keyword", "SuperstepStatus": "Keyword", "SuperstepNodes": "KeywordList",
		"SuperstepQuestions": "Int", "SuperstepParent": "Keyword", "SuperstepApprovers": "KeywordList",
		"SuperstepDue": "Datetime", "SuperstepRisk": "Keyword",
	} {
		require.Contains(t, string(made), "operator search-attribute create --name "+name+" --type "+kind+where)
	}

	_, err = shell(t, "temporal-namespace.sh", dir, env...)
	require.NoError(t, err)
	made, err = os.ReadFile(calls)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(made), "namespace create"), "an existing namespace is left alone")
}

func TestNamespaceScriptGivesUp(t *testing.T) {
	dir := t.TempDir()
	stub(t, dir, "temporal", "echo connection refused >&2; exit 1")
	stub(t, dir, "sleep", "")
	out, err := shell(t, "temporal-namespace.sh", dir, "TEMPORAL_ADDRESS=t:1", "TEMPORAL_NAMESPACE=default")
	require.Error(t, err)
	require.Contains(t, out, "connection refused", "says what the last attempt met")
}
