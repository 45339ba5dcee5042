package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"superstep.dev/cli"
)

// asProgram makes this test binary a program that serves the graphs of these tests.
const asProgram = "SUPERSTEP_E2E_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		if moment := os.Getenv(diesAt); moment != "" {
			os.Exit(fated(moment, os.Args[2:]))
		}
		cli.Program{Graphs: graphs(), Leaders: leaders()}.Main() // ends the process
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "superstep-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "make a directory for the binaries:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binaryDir = dir
	flag.Parse()
	if testing.Short() {
		fmt.Println("skipped: builds the commands, and kills them for minutes")
		return 0
	}
	if !given("test.parallel") {
		// These tests mostly wait for other processes, however few processors there are.
		if err := flag.Set("test.parallel", "6"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

var binaryDir string

// given reports whether a flag is on the command line.
func given(name string) (given bool) {
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}

// The commands under test, by the directories of their packages.
const (
	workerCommand    = "worker"
	starterCommand   = "starter"
	superstepCommand = "cmd/superstep"
	paymentsCommand  = "examples/refund/payments/cmd"
)

// binaries builds the commands once for all tests.
var binaries = sync.OnceValues(func() (map[string]string, error) {
	paths := map[string]string{}
	for _, pkg := range []string{workerCommand, starterCommand, superstepCommand, paymentsCommand} {
		path := filepath.Join(binaryDir, filepath.Base(filepath.Dir(pkg))+"-"+filepath.Base(pkg))
		args := append([]string{"build", "-o", path}, buildFlags...)
		build := exec.Command("go", append(args, "./"+pkg)...)
		build.Dir = "../.." // the module
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", pkg, err, out)
		}
		paths[pkg] = path
	}
	return paths, nil
})
