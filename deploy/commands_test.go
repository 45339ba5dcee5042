package deploy_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite commands.json")

// command is how one service of ours is run, and how its program is built. The
// list of them is kept in commands.json, so that tests anywhere can run the
// services as Compose does, without containers.
type command struct {
	Service     string            `json:"service"`
	Binary      string            `json:"binary"`  // its name in the image
	Package     string            `json:"package"` // relative to the repository
	Args        []string          `json:"args"`
	Environment map[string]string `json:"environment"`
	// Healthcheck are the arguments of the same binary; none for a one-shot.
	Healthcheck []string `json:"healthcheck,omitempty"`
}

var buildLine = regexp.MustCompile(`go build .*-o /out/(\S+) (\./\S+)`)

// binaries maps the programs in the image to the packages they are built from.
func binaries(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../Dockerfile")
	require.NoError(t, err)
	built := map[string]string{}
	for _, match := range buildLine.FindAllStringSubmatch(string(text), -1) {
		built[match[1]] = match[2]
		require.Contains(t, string(text), "/out/"+match[1], "copied to the image")
	}
	return built
}

// commands reads what our services run out of docker-compose.yml.
func commands(t *testing.T) []command {
	t.Helper()
	built := binaries(t)
	services := project(t).Services
	var list []command
	for _, name := range ours {
		service := services[name]
		words := append(append([]string{}, service.Entrypoint...), service.Command...)
		binary := strings.TrimPrefix(words[0], "/")
		require.Contains(t, built, binary, "%s runs a program that the Dockerfile does not build", name)
		c := command{Service: name, Binary: binary, Package: built[binary], Args: words[1:], Environment: map[string]string{}}
		for variable, value := range service.Environment {
			require.NotNil(t, value, variable)
			c.Environment[variable] = *value
		}
		if service.HealthCheck != nil {
			test := service.HealthCheck.Test
			require.Equal(t, []string{"CMD", words[0]}, []string(test[:2]), "%s: only its own program is in the image", name)
			c.Healthcheck = test[2:]
		}
		list = append(list, c)
	}
	return list
}

func TestDockerfileBuildsEveryProgram(t *testing.T) {
	require.Equal(t, map[string]string{
		"superstep-worker": "./worker",
		"superstep":        "./cmd/superstep",
		"payments":         "./examples/refund/payments/cmd",
	}, binaries(t))
	for _, dir := range binaries(t) {
		require.DirExists(t, filepath.Join("..", dir))
	}
}

func TestCommandsFile(t *testing.T) {
	var want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetIndent("", "  ")
	require.NoError(t, encoder.Encode(commands(t)))
	if *update {
		require.NoError(t, os.WriteFile("commands.json", want.Bytes(), 0o644))
	}
	got, err := os.ReadFile("commands.json")
	require.NoError(t, err)
	require.Equal(t, want.String(), string(got), "run: go test ./deploy -update")
}

// The payments service is run here as Compose runs it, with only its address
// and file moved: the flags and the health check of the compose file exist.
func TestPaymentsCommandRuns(t *testing.T) {
	var payments command
	for _, c := range commands(t) {
		if c.Service == "payments" {
			payments = c
		}
	}
	dir := t.TempDir()
	binary := filepath.Join(dir, payments.Binary)
	build := exec.Command("go", "build", "-o", binary, payments.Package)
	build.Dir = ".."
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	ready := filepath.Join(dir, "ready")
	args := moved(payments.Args, map[string]string{"--addr": "127.0.0.1:0", "--db": filepath.Join(dir, "p.db")})
	service := exec.Command(binary, append(args, "--ready-file", ready)...)
	require.NoError(t, service.Start())
	t.Cleanup(func() {
		require.NoError(t, service.Process.Signal(os.Interrupt))
		require.NoError(t, service.Wait())
	})
	var addr string
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(ready)
		addr = strings.TrimSpace(string(text))
		return err == nil
	}, 2*time.Minute, 5*time.Millisecond)
	check := append(moved(payments.Healthcheck, map[string]string{"--addr": addr}), "--timeout", "1m") // this machine may be busier than Compose's
	out, err = exec.Command(binary, check...).CombinedOutput()
	require.NoError(t, err, string(out))
}

// moved replaces the values of flags that are there.
func moved(args []string, values map[string]string) []string {
	args = append([]string{}, args...)
	for i := range len(args) - 1 {
		if value, ok := values[args[i]]; ok {
			args[i+1] = value
		}
	}
	return args
}
