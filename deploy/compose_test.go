package deploy_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"

	"superstep.dev/internal/testserver"
	"superstep.dev/thread/live"
	"superstep.dev/thread/live/nats"
)

// ours are the services that run our programs.
var ours = []string{"payments", "superstep", "worker"}

// oneShots end by themselves, and others wait for their success.
var oneShots = []string{"superstep", "temporal-namespace", "temporal-schema"}

// project loads docker-compose.yml as Compose does, with every profile and with
// an environment that sets nothing: the defaults must do.
func project(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../docker-compose.yml"},
		cli.WithProfiles([]string{"*"}), cli.WithDiscardEnvFile)
	require.NoError(t, err)
	loaded, err := options.LoadProject(context.WithoutCancel(t.Context()))
	require.NoError(t, err)
	return loaded
}

func TestComposeServices(t *testing.T) {
	want := []string{"nats", "payments", "postgres", "superstep", "temporal", "temporal-namespace", "temporal-schema", "temporal-ui", "worker"}
	require.Equal(t, want, slices.Sorted(maps.Keys(project(t).Services)))
}

func TestImagesAreExact(t *testing.T) {
	exact := regexp.MustCompile(`^[a-z0-9./-]+(:v?\d+\.\d+(\.\d+)?(-alpine)?|@sha256:[0-9a-f]{64})$`)
	for name, service := range project(t).Services {
		require.Regexp(t, exact, service.Image, name)
	}
}

func TestTemporalImagesFitEachOther(t *testing.T) {
	services := project(t).Services
	_, version, _ := strings.Cut(services["temporal"].Image, ":")
	for _, name := range []string{"temporal-schema", "temporal-namespace"} {
		require.Equal(t, "temporalio/admin-tools:"+version, services[name].Image, "the schema must be the server's")
	}
}

func TestLongRunningServicesHaveHealthChecks(t *testing.T) {
	for name, service := range project(t).Services {
		if slices.Contains(oneShots, name) {
			require.Equal(t, "no", service.Restart, name)
			continue
		}
		check := service.HealthCheck
		require.NotNil(t, check, name)
		require.False(t, check.Disable, name)
		require.Equal(t, "CMD", check.Test[0], "%s: without a shell, which our image does not have", name)
		require.NotNil(t, check.Interval, name)
		require.NotNil(t, check.Timeout, name)
		require.NotNil(t, check.Retries, name)
		require.Equal(t, "unless-stopped", service.Restart, name)
	}
}

// Who waits for whom: a one-shot must have succeeded, a service be healthy.
func TestDependencies(t *testing.T) {
	services := project(t).Services
	for name, service := range services {
		for other, condition := range service.DependsOn {
			want := types.ServiceConditionHealthy
			if slices.Contains(oneShots, other) {
				want = types.ServiceConditionCompletedSuccessfully
			}
			require.Equal(t, want, condition.Condition, "%s on %s", name, other)
		}
	}
	require.Contains(t, services["temporal-schema"].DependsOn, "postgres")
	require.Contains(t, services["temporal"].DependsOn, "temporal-schema")
	require.Contains(t, services["temporal-namespace"].DependsOn, "temporal")
	require.Contains(t, services["worker"].DependsOn, "temporal-namespace")
	require.Contains(t, services["worker"].DependsOn, "payments")
}

func TestOurServicesAreConfined(t *testing.T) {
	services := project(t).Services
	for _, name := range ours {
		service := services[name]
		require.Equal(t, "65532:65532", service.User, name)
		require.True(t, service.ReadOnly, name)
		require.Equal(t, []string{"ALL"}, service.CapDrop, name)
		require.Empty(t, service.CapAdd, name)
		require.Equal(t, "build", service.PullPolicy, name)
		require.NotNil(t, service.Build, name)
	}
	for name, service := range services {
		require.Contains(t, service.SecurityOpt, "no-new-privileges:true", name)
		require.Contains(t, service.CapDrop, "ALL", name)
		require.False(t, service.Privileged, name)
	}
}

// A secret arrives as a file, in the services that need it and no others.
func TestSecretsAreFiles(t *testing.T) {
	loaded := project(t)
	secretive := regexp.MustCompile(`(?i)(password|passwd|pwd|secret|token|api_?key|credential)`)
	for name, service := range loaded.Services {
		for variable, value := range service.Environment {
			if secretive.MatchString(variable) {
				require.True(t, strings.HasSuffix(variable, "_FILE"), "%s: %s", name, variable)
				require.NotNil(t, value)
				require.True(t, strings.HasPrefix(*value, "/run/secrets/"), "%s: %s=%s", name, variable, *value)
			}
		}
		require.Empty(t, service.EnvFiles, name)
		needs := slices.Contains([]string{"postgres", "temporal", "temporal-schema"}, name)
		require.Equal(t, needs, len(service.Secrets) == 1, name)
	}
	file := loaded.Secrets["postgres_password"].File
	require.True(t, strings.HasSuffix(file, "/deploy/secrets/postgres_password"), file)
}

func TestSecretPathCanBeSet(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{"../docker-compose.yml"},
		cli.WithDiscardEnvFile, cli.WithEnv([]string{"POSTGRES_PASSWORD_FILE=/run/elsewhere"}))
	require.NoError(t, err)
	loaded, err := options.LoadProject(context.WithoutCancel(t.Context()))
	require.NoError(t, err)
	require.Equal(t, "/run/elsewhere", loaded.Secrets["postgres_password"].File)
	require.NotContains(t, loaded.Services, "superstep", "the command line is not started by up")
}

func TestWorkersCanBeLost(t *testing.T) {
	worker := project(t).Services["worker"]
	require.Equal(t, 2, worker.GetScale())
	require.Empty(t, worker.Ports, "two replicas cannot publish one port")
	for variable, want := range map[string]string{
		"TEMPORAL_ADDRESS": "temporal:7233", "TEMPORAL_NAMESPACE": "default", "PAYMENTS_URL": "http://payments:8090",
	} {
		require.NotNil(t, worker.Environment[variable], variable)
		require.Equal(t, want, *worker.Environment[variable])
	}
}

// Programs name the server that carries live tokens, and nothing waits for it: without it tokens come with the results.
func TestLiveTokensHaveAServer(t *testing.T) {
	services := project(t).Services
	for name, service := range services {
		require.NotContains(t, service.DependsOn, "nats", name)
	}
	for _, name := range []string{"worker", "superstep"} {
		url := services[name].Environment["SUPERSTEP_LIVE"]
		require.NotNil(t, url, name)
		require.Equal(t, "nats://nats:4222?storage=memory", *url)
	}
	service := services["nats"]
	require.Equal(t, []string{"nats-server"}, []string(service.Entrypoint))
	dir := t.TempDir()
	args := moved(service.Command, map[string]string{"--addr": "127.0.0.1", "--port": "-1", "--http_port": "-1", "--store_dir": filepath.Join(dir, "store")})
	args = append(args, "--ports_file_dir", dir) // it takes ports that nobody has, and says there which
	server := exec.Command(testserver.NATSBinary(t), args...)
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		require.NoError(t, server.Process.Kill())
		_ = server.Wait() // it says that it was killed
	})
	port, health := natsPorts(t, dir)
	check := service.HealthCheck.Test[len(service.HealthCheck.Test)-1]
	require.Eventually(t, func() bool {
		answer, err := http.Get(strings.Replace(check, ":8222", ":"+health, 1))
		return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	}, 2*time.Minute, 20*time.Millisecond)
	url := strings.Replace(*services["worker"].Environment["SUPERSTEP_LIVE"], "nats:4222", "127.0.0.1:"+port, 1)
	transport, err := nats.Open(nats.Config{URL: url})
	require.NoError(t, err)
	t.Cleanup(transport.Close)
	emission := live.Emission{Thread: "t", Run: "r", Task: "1/a", Execution: 1}
	require.NoError(t, transport.Publish(t.Context(), emission))
	comes, err := transport.Subscribe(t.Context(), "t")
	require.NoError(t, err)
	require.Equal(t, emission.Of(), (<-comes).Of())
}

// natsPorts are the ports that a NATS server has taken for clients and for health checks, once it says so in dir.
func natsPorts(t *testing.T, dir string) (clients, health string) {
	t.Helper()
	var ports struct{ NATS, Monitoring []string }
	require.Eventually(t, func() bool {
		files, err := filepath.Glob(filepath.Join(dir, "*.ports"))
		if err != nil || len(files) != 1 {
			return false
		}
		text, err := os.ReadFile(files[0])
		return err == nil && json.Unmarshal(text, &ports) == nil && len(ports.NATS) > 0 && len(ports.Monitoring) > 0
	}, 2*time.Minute, 20*time.Millisecond)
	port := func(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }
	return port(ports.NATS[0]), port(ports.Monitoring[0])
}

func TestPortsAreLocal(t *testing.T) {
	for name, service := range project(t).Services {
		for _, port := range service.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, "%s: Temporal asks nobody who they are", name)
		}
	}
}

func TestOnlyTemporalReachesTheDatabase(t *testing.T) {
	loaded := project(t)
	require.True(t, bool(loaded.Networks["store"].Internal))
	for name, service := range loaded.Services {
		_, reaches := service.Networks["store"]
		require.Equal(t, slices.Contains([]string{"postgres", "temporal", "temporal-schema"}, name), reaches, name)
	}
	require.NotContains(t, loaded.Services["postgres"].Networks, "default")
}
