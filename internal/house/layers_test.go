package house

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// arrow says what one package, or with "/..." everything below it, may import of this module and of others'.
type arrow struct {
	from   string
	ours   []string
	theirs []string
}

// anything allows any package: for programs, which nobody imports.
var anything = []string{"*"}

// Temporal's own modules, without its server.
var temporal = []string{"go.temporal.io/sdk/...", "go.temporal.io/api/..."}

// arrows are the layers, lowest first. The first line that names a package decides. A package that no line names is a
// mistake: whoever adds one says here where it stands.
var arrows = []arrow{
	{from: "internal/clip"},
	// Under which names a server on this machine may be asked.
	{from: "internal/hosts"},
	// Room on the stack of a new goroutine.
	{from: "internal/stackroom"},
	// Where large values are cut that share what they have in common.
	{from: "internal/pieces", theirs: []string{"github.com/restic/chunker"}},
	// Long-term memory: its rules know nothing of threads. What links a database's driver is a package of its own.
	{from: "store"},
	{from: "internal/database", ours: []string{"store"}},
	{from: "store/sqlite", ours: []string{"store", "internal/database"}, theirs: []string{"modernc.org/sqlite/..."}},
	{from: "store/postgres", ours: []string{"store", "internal/database"}, theirs: []string{"github.com/jackc/pgx/v5/..."}},
	{from: "store/storetest", ours: []string{"store"}, theirs: []string{"github.com/stretchr/testify/..."}},
	// Folders that a devserver shares with the programs of its machine.
	{from: "internal/announced", theirs: temporal},
	{from: "internal/files"},
	{from: "internal/delta"},
	{from: "internal/calendar"},
	{from: "internal/lateness", theirs: append([]string{"google.golang.org/grpc/..."}, temporal...)},
	{from: "internal/nexttask", theirs: append([]string{"google.golang.org/grpc/..."}, temporal...)},
	{from: "internal/acked", ours: []string{"internal/nexttask"}, theirs: append([]string{"google.golang.org/grpc/...", "google.golang.org/protobuf/proto"}, temporal...)},
	{from: "graphadapter/pregel"},
	{from: "internal/jsontext"},
	{from: "internal/jsonfit", ours: []string{"graphadapter/pregel"}, theirs: []string{"github.com/google/jsonschema-go/jsonschema"}},
	{from: "graphadapter/ledger"},
	{from: "approval", ours: []string{"internal/clip"}, theirs: []string{"github.com/gowebpki/jcs"}},
	{from: "job"},
	// Nobody below a program imports it: who wants another planner writes a job.Planner.
	{
		from: "job/planner", ours: []string{"job"},
		theirs: []string{"github.com/openai/openai-go/v3/...", "github.com/tailscale/hujson"},
	},
	{from: "approval/token", ours: []string{"approval", "internal/files"}, theirs: []string{"github.com/golang-jwt/jwt/v5"}},
	{
		from: "approval/webhook", ours: []string{"approval"},
		theirs: []string{"github.com/standard-webhooks/standard-webhooks/libraries/go"},
	},
	{
		from: "approval/rules", ours: []string{"approval", "internal/files"},
		theirs: []string{"cel.dev/cel-go/...", "go.yaml.in/yaml/v3"},
	},
	{
		from: "graphadapter", ours: []string{"graphadapter/pregel", "graphadapter/ledger", "approval", "internal/clip", "internal/jsontext"},
		theirs: []string{"github.com/google/jsonschema-go/jsonschema", "github.com/gowebpki/jcs", "github.com/jellydator/ttlcache/v3"},
	},
	// What a run owes to people and to time: both runtimes drive it.
	{
		from: "graphadapter/life",
		ours: []string{"graphadapter", "graphadapter/pregel", "graphadapter/ledger", "graphadapter/taskrun", "approval", "internal/clip"},
	},
	{from: "graphadapter/past", ours: []string{"graphadapter", "graphadapter/pregel", "graphadapter/ledger", "internal/clip"}},
	{
		from: "graphadapter/taskrun",
		ours: []string{"graphadapter", "graphadapter/pregel", "graphadapter/ledger", "graphadapter/past", "approval", "internal/clip", "internal/jsontext", "internal/stackroom"},
	},
	{
		from: "graphadapter/segment",
		ours: []string{"graphadapter", "graphadapter/pregel", "graphadapter/ledger", "graphadapter/taskrun", "internal/clip", "internal/jsontext"},
	},
	// One execution of one task in an activity of its own, without Temporal.
	{
		from: "graphadapter/host",
		ours: []string{"graphadapter", "graphadapter/pregel", "graphadapter/ledger", "graphadapter/taskrun"},
	},
	{from: "graphadapter/stream", ours: []string{"graphadapter", "graphadapter/pregel"}},
	// What workers count of their own, through Temporal's metrics handler.
	{from: "internal/figures", theirs: temporal},
	// What spans are called, and telling them through OpenTelemetry's API. The SDK and exporters are for programs.
	{
		from:   "internal/tracing",
		theirs: []string{"github.com/jellydator/ttlcache/v3", "go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/codes", "go.opentelemetry.io/otel/propagation", "go.opentelemetry.io/otel/trace"},
	},
	{from: "internal/draw", ours: []string{"graphadapter/pregel"}},
	// What stays readable of failures and log lines where payloads are encoded.
	{from: "internal/codec", ours: []string{"thread", "thread/secret", "thread/storage", "internal/sdklog"}, theirs: append([]string{"google.golang.org/protobuf/proto"}, temporal...)},
	{from: "internal/sdklog", theirs: append([]string{"go.uber.org/zap/..."}, temporal...)},
	{from: "internal/history", ours: []string{"graphadapter/...", "internal/codec", "thread/storage"}, theirs: append([]string{"google.golang.org/protobuf/proto"}, temporal...)},
	{
		from: "activities", ours: []string{"graphadapter/...", "approval", "job", "thread/secret", "thread/storage", "internal/clip", "internal/figures", "internal/history", "internal/jsonfit", "internal/stackroom", "internal/tracing"},
		theirs: append([]string{"github.com/jellydator/ttlcache/v3", "go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/trace", "golang.org/x/sync/singleflight"}, temporal...),
	},
	// What clients and workers say to each other: names and data, without the workflows.
	{
		from: "workflows/protocol", ours: []string{"graphadapter", "graphadapter/life", "graphadapter/pregel", "graphadapter/segment", "approval", "job", "internal/clip"},
		theirs: []string{"go.temporal.io/sdk/temporal"},
	},
	{from: "internal/attributes", ours: []string{"workflows/protocol"}, theirs: append([]string{"google.golang.org/grpc"}, temporal...)},
	{from: "workflows/listing", ours: []string{"workflows/protocol", "approval"}, theirs: temporal},
	{from: "workflows/leading", ours: []string{"workflows", "workflows/protocol", "workflows/listing", "thread/secret", "graphadapter", "graphadapter/life", "graphadapter/pregel", "job", "internal/clip", "internal/tracing"},
		theirs: append([]string{"go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/trace"}, temporal...)},
	{
		from: "workflows", ours: []string{"workflows/protocol", "workflows/listing", "thread/secret", "graphadapter/...", "approval", "job", "internal/clip", "internal/draw", "internal/figures", "internal/stackroom", "internal/tracing"},
		theirs: append([]string{"go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/trace", "github.com/google/jsonschema-go/jsonschema"}, temporal...),
	},
	// What callers and runtimes say to each other.
	{from: "thread", ours: []string{"graphadapter", "graphadapter/life", "graphadapter/pregel", "graphadapter/ledger", "approval", "job"}},
	{from: "thread/live", ours: []string{"graphadapter"}},
	// Only programs whose live tokens go over a NATS server need a client of it.
	{
		from: "thread/live/nats", ours: []string{"thread/live"},
		theirs: append([]string{"github.com/nats-io/nats.go/...", "go.uber.org/zap/...", "google.golang.org/protobuf/proto"}, temporal...),
	},
	// What is stored of threads is encrypted there. Nothing of a thread is known there either.
	{
		from: "thread/secret", ours: []string{"internal/files", "internal/pieces"}, theirs: append([]string{"github.com/klauspost/compress/zstd", "github.com/mattn/go-shellwords",
			"github.com/restic/chunker", "google.golang.org/protobuf/proto"}, temporal...),
	},
	// Where large values lie. Nothing of a thread is known there but its name.
	{
		from: "thread/storage", ours: []string{"job", "internal/announced", "internal/delta", "internal/pieces"}, theirs: append([]string{"github.com/cenkalti/backoff/v5", "github.com/jellydator/ttlcache/v3", "github.com/klauspost/compress/zstd",
			"golang.org/x/sync/errgroup", "google.golang.org/protobuf/..."}, temporal...),
	},
	// Files of threads: histories and stored values as they were kept, and a Temporal client that is answered from them.
	{
		from: "internal/archive", ours: []string{"thread", "thread/storage"},
		theirs: append([]string{"github.com/gofrs/flock", "github.com/klauspost/compress/zstd", "google.golang.org/protobuf/..."}, temporal...),
	},
	{
		from: "thread/archive", ours: []string{"internal/archive", "thread", "thread/storage", "job"},
		theirs: append([]string{"google.golang.org/grpc", "google.golang.org/protobuf/proto"}, temporal...),
	},
	// Only programs whose values lie in a bucket need a client of S3.
	{
		from: "thread/storage/s3", ours: []string{"thread/storage"},
		theirs: []string{"github.com/minio/minio-go/v7/...", "github.com/jellydator/ttlcache/v3"},
	},
	// Who may have decrypted what others have no keys for.
	{from: "thread/secret/endpoint", ours: []string{"thread/secret", "internal/hosts"}, theirs: append([]string{"google.golang.org/protobuf/..."}, temporal...)},
	{from: "internal/nearest", theirs: []string{"github.com/agnivade/levenshtein"}},
	{from: "message", ours: []string{"thread", "internal/jsonfit", "graphadapter/pregel"}},
	{from: "internal/follow", ours: []string{"thread", "internal/history"}},
	{from: "internal/tape", ours: []string{"thread", "graphadapter", "graphadapter/pregel", "graphadapter/stream"}},
	{
		from: "internal/runtime",
		ours: []string{"thread", "graphadapter/...", "workflows/protocol", "approval", "job", "internal/jsontext", "internal/nearest"},
	},
	{from: "internal/memory", ours: []string{"thread", "internal/runtime", "internal/tape", "graphadapter/...", "workflows/protocol", "approval"}, theirs: []string{"github.com/google/uuid"}},
	{
		from:   "internal/remote",
		ours:   []string{"thread/...", "internal/runtime", "internal/tape", "internal/acked", "internal/archive", "internal/attributes", "internal/calendar", "internal/clip", "internal/codec", "internal/follow", "internal/history", "internal/jsonfit", "internal/tracing", "graphadapter/...", "workflows/...", "approval", "job"},
		theirs: append([]string{"github.com/google/uuid", "github.com/jellydator/ttlcache/v3", "golang.org/x/sync/errgroup", "google.golang.org/grpc", "google.golang.org/protobuf/..."}, temporal...),
	},
	{from: "internal/guard", ours: []string{"graphadapter", "graphadapter/taskrun"}},
	{
		from: "internal/serving",
		ours: []string{"thread/...", "internal/remote", "internal/codec", "internal/history", "internal/attributes", "internal/lateness", "internal/nexttask", "internal/tracing", "graphadapter/...", "workflows/...", "activities", "approval", "job"}, theirs: temporal,
	},
	{
		from: "",
		ours: []string{"store", "thread/...", "message", "graphadapter/...", "approval", "job", "activities", "workflows/...", "internal/acked", "internal/lateness", "internal/nexttask", "internal/attributes", "internal/clip", "internal/codec", "internal/draw",
			"internal/guard", "internal/jsonfit", "internal/memory", "internal/nearest", "internal/remote", "internal/runtime", "internal/sdklog", "internal/serving", "internal/tracing"},
		theirs: append([]string{"github.com/google/uuid", "go.opentelemetry.io/otel/trace", "go.uber.org/zap/..."}, temporal...),
	},
	{from: "job/leader", ours: []string{"", "thread", "job", "activities", "graphadapter/...", "internal/clip", "internal/jsonfit", "internal/runtime"}},
	{from: "internal/house"},
	// Sets the pace of garbage collection of a whole process, so programs use it and no library does.
	{from: "internal/heaproom"},
	// Exports measurements: programs use it, so that nobody who imports a graph has a client of a collector.
	{from: "internal/telemetry", ours: []string{"internal/figures"}, theirs: anything},
	// Only starts a process, so that whoever tests can use it.
	{from: "internal/testserver", theirs: []string{"github.com/gofrs/flock"}},
	{from: "test/run", ours: []string{"internal/testserver"}},
	{
		from: "graphtest/...", ours: []string{"", "store", "job/leader", "thread/...", "graphtest/...", "internal/testserver", "graphadapter/...", "approval"},
		theirs: append([]string{"github.com/stretchr/testify/...", "pgregory.net/rapid", "go.uber.org/zap/..."}, temporal...),
	},
	// The protocol of LangGraph's agent server over the public API: nothing of a run is decided here.
	{from: "serve/record", ours: []string{"thread", "workflows/protocol"}, theirs: append([]string{"github.com/google/uuid", "golang.org/x/sync/semaphore"}, temporal...)},
	{from: "serve/blocks"},
	{from: "serve/assistant", theirs: temporal},
	{from: "serve/cron", ours: []string{"internal/calendar"}, theirs: append([]string{"github.com/google/uuid"}, temporal...)},
	// Who asks, and what is theirs: the server alone knows of requests and runs.
	{from: "serve/access", ours: []string{"internal/files"}, theirs: []string{"github.com/MicahParks/keyfunc/v3", "github.com/golang-jwt/jwt/v5", "golang.org/x/time/rate"}},
	{from: "serve", ours: []string{"", "store", "serve/access", "serve/blocks", "serve/record", "serve/assistant", "serve/cron", "thread", "graphadapter", "graphadapter/pregel", "internal/hosts", "internal/jsontext", "internal/tracing"}, theirs: append([]string{"github.com/google/jsonschema-go/jsonschema", "github.com/google/uuid", "github.com/jellydator/ttlcache/v3", "golang.org/x/time/rate", "go.opentelemetry.io/otel/propagation", "go.opentelemetry.io/otel/trace", "go.uber.org/zap/...", "golang.org/x/sync/semaphore", "golang.org/x/sync/singleflight"}, temporal...)},
	// The command line shows a graph's Spec, which is the engine's data type.
	{from: "cli/...", ours: []string{"", "store/...", "internal/announced", "internal/files", "job/leader", "thread/...", "cli/screen", "cli/keyuse", "serve", "serve/access", "graphadapter/pregel", "job", "approval/...", "internal/heaproom", "internal/sdklog", "internal/telemetry"}, theirs: anything},
	// Programs that start, drive or measure the others from outside; nobody imports them.
	{from: "test/processes/...", ours: []string{"test/processes/...", "internal/testserver"}, theirs: anything},
	{from: "examples/internal/approver", ours: anything, theirs: anything},
	{from: "examples/internal/demo", ours: anything, theirs: anything},
	{from: "examples/internal/dev", ours: anything, theirs: anything},
	{from: "examples/refund/demo/...", ours: anything, theirs: anything},
	{from: "examples/research/demo/...", ours: anything, theirs: anything},
	{from: "examples/refund/dev/...", ours: anything, theirs: anything},
	{from: "examples/chat/dev/...", ours: anything, theirs: anything},
	{from: "test/rig", ours: []string{"", "job/leader", "thread/...", "message", "graphtest", "internal/testserver", "job", "workflows/protocol"}, theirs: anything},
	{from: "test/bench/...", ours: anything, theirs: anything},
	{from: "test/e2e", ours: anything, theirs: anything},
	{from: "test/chaos/...", ours: anything, theirs: anything},
	{from: "test/wire", ours: anything, theirs: anything},
	{from: "test/serve", ours: anything, theirs: anything},
	{from: "test/soak", ours: anything, theirs: anything},
	{from: "test/interop", ours: anything, theirs: anything},
	{from: "test/store", ours: anything, theirs: anything},
	{from: "test/conformance/...", ours: []string{"", "thread/...", "message", "test/conformance/...", "graphadapter/...", "internal/testserver"}, theirs: anything},
	{from: "examples/...", ours: []string{"", "job/leader", "thread/...", "message", "examples/...", "cli", "approval/...", "job", "job/planner", "serve"}, theirs: anything},
	{from: "worker", ours: []string{"cli", "examples/..."}},
	{from: "starter", ours: []string{"cli", "examples/..."}},
	{from: "cmd/...", ours: []string{"cli", "examples/..."}},
}

// below returns patterns of this module's packages as import paths.
func below(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strings.TrimSuffix(mainModule+"/"+name, "/")
	}
	return out
}

func (a arrow) allows(imported string) bool {
	switch {
	case standard(imported):
		return true
	case within(imported, []string{mainModule + "/..."}):
		return slices.Equal(a.ours, anything) || within(imported, below(a.ours))
	default:
		return slices.Equal(a.theirs, anything) || within(imported, a.theirs)
	}
}

func arrowOf(pkg string) (arrow, bool) {
	for _, a := range arrows {
		if within(pkg, below([]string{a.from})) {
			return a, true
		}
	}
	return arrow{}, false
}

// TestArrowsPointDown holds every package to the layer it stands in.
func TestArrowsPointDown(t *testing.T) {
	for pkg, imported := range read(t, root, mainModule) {
		a, known := arrowOf(pkg)
		if !known {
			t.Errorf("%s is in no layer: say in arrows what it may import", pkg)
			continue
		}
		for _, i := range imported {
			if !a.allows(i) {
				t.Errorf("%s imports %s, which its layer may not", pkg, i)
			}
		}
	}
}

// pure are the parts of the standard library that depend on nothing but their arguments. The engine is replayed, so it
// uses no other: no clock, no randomness, no files, no network, no goroutines. With sync it makes texts that several tasks read when
// the first of them asks: that decides nothing.
var pure = []string{
	"bytes", "cmp", "crypto/sha256", "encoding/binary", "encoding/hex", "encoding/json", "errors", "fmt", "hash", "maps", "math",
	"math/big", "math/bits", "slices", "sort", "strconv", "strings", "sync", "unicode", "unicode/utf8",
}

// TestThePureLayersArePure holds the two packages that decide to what can be replayed.
func TestThePureLayersArePure(t *testing.T) {
	sources := read(t, root, mainModule)
	for _, pkg := range below([]string{"graphadapter/pregel", "graphadapter/ledger"}) {
		imported, found := sources[pkg]
		if !found {
			t.Errorf("%s has no source", pkg)
		}
		for _, i := range imported {
			if !slices.Contains(pure, i) && !within(i, below([]string{"graphadapter/..."})) {
				t.Errorf("%s imports %s: it must stay a function of its arguments", pkg, i)
			}
		}
	}
}

// TestThePureLayersWalkMapsInOrder: of package maps they use nothing that goes through a map in its own order.
func TestThePureLayersWalkMapsInOrder(t *testing.T) {
	inOrder := []string{"Clone", "Copy", "Equal", "EqualFunc"}
	for _, dir := range []string{"graphadapter/pregel", "graphadapter/ledger", "graphadapter/life"} {
		for _, use := range usesOf(t, filepath.Join(root, dir), "maps") {
			if !slices.Contains(inOrder, use) {
				t.Errorf("%s uses maps.%s, whose order differs from run to run", dir, use)
			}
		}
	}
}

// drawnWidth is how wide docs/architecture.md draws the house; behind that it says what the rooms are for.
const drawnWidth = 62

// TestTheHouseIsDrawn: a package that docs/architecture.md does not show is a room that nobody finds, and a folder that it draws is
// there.
func TestTheHouseIsDrawn(t *testing.T) {
	_, house, found := strings.Cut(fileText(t, "docs/architecture.md"), "## The house\n")
	house, _, ended := strings.Cut(house, "\n## ")
	if !found || !ended {
		t.Fatal("docs/architecture.md has no section that draws the house")
	}
	_, drawing, _ := strings.Cut(house, "```\n")
	drawing, _, _ = strings.Cut(drawing, "```\n")
	for line := range strings.Lines(drawing) {
		line := []rune(line)
		for _, folder := range strings.Fields(string(line[:min(len(line), drawnWidth)])) {
			if strings.Trim(folder, "abcdefghijklmnopqrstuvwxyz/") != "" {
				continue
			}
			if info, err := os.Stat(filepath.Join(root, folder)); err != nil || !info.IsDir() {
				t.Errorf("docs/architecture.md draws %s, which is no folder", folder)
			}
		}
	}
	named := strings.FieldsFunc(house, func(r rune) bool { return strings.ContainsRune(" \n`(),;:", r) })
	for pkg := range read(t, root, mainModule) {
		dir := strings.TrimPrefix(pkg, mainModule+"/")
		top, _, _ := strings.Cut(dir, "/")
		if dir != mainModule && !slices.Contains([]string{"examples", "test"}, top) && !slices.Contains(named, dir) {
			t.Errorf("docs/architecture.md does not name %s: say there what the package is for", dir)
		}
	}
}

// TestWhoeverNeedsNoClientOfOthersHasNone: nothing below the command line, and a program like it, imports those of a bucket and of a NATS server.
func TestWhoeverNeedsNoClientOfOthersHasNone(t *testing.T) {
	for pkg, imported := range read(t, root, mainModule) {
		for _, client := range []string{"thread/storage/s3", "thread/live/nats"} {
			if dir := strings.TrimPrefix(pkg, mainModule+"/"); dir != "cli" && dir != "examples/chat/service" && !within(pkg, below([]string{"test/..."})) &&
				slices.Contains(imported, mainModule+"/"+client) {
				t.Errorf("%s imports %s", pkg, client)
			}
		}
	}
}

// TestTheServerStaysOutside: whoever uses the library inherits every module in its go.mod, and none of them may be the
// Temporal server or the NATS server. go.mod lists every module that provides a package to this one, however indirectly.
func TestTheServerStaysOutside(t *testing.T) {
	for pkg, imported := range read(t, root, mainModule) {
		for _, i := range imported {
			if within(i, []string{"go.temporal.io/server/...", "github.com/nats-io/nats-server/..."}) {
				t.Errorf("%s imports %s", pkg, i)
			}
		}
	}
	for _, server := range []string{"go.temporal.io/server ", "github.com/nats-io/nats-server/"} {
		if text := fileText(t, "go.mod"); strings.Contains(text, server) {
			t.Error("go.mod requires " + server)
		}
	}
}

// TestTheDevserverStandsAlone: it runs our graphs like any other server would, knowing nothing of them.
func TestTheDevserverStandsAlone(t *testing.T) {
	const module = mainModule + "/devserver"
	sources := read(t, filepath.Join(root, "devserver"), module)
	if len(sources) == 0 {
		t.Fatal("the devserver has no source")
	}
	for pkg, imported := range sources {
		for _, i := range imported {
			if within(i, []string{mainModule + "/..."}) && !within(i, []string{module + "/..."}) {
				t.Errorf("%s imports %s", pkg, i)
			}
		}
	}
	for line := range strings.Lines(fileText(t, "devserver/go.mod")) {
		if name, _, _ := strings.Cut(strings.TrimSpace(line), " "); name == mainModule {
			t.Error("devserver/go.mod requires " + mainModule)
		}
	}
}

// TestALayerRefuses makes sure that the table refuses what it is there to refuse.
func TestALayerRefuses(t *testing.T) {
	for _, c := range []struct{ from, imports string }{
		{"graphadapter/pregel", mainModule + "/graphadapter"},
		{"graphadapter/pregel", "go.temporal.io/sdk/workflow"},
		{"graphadapter", mainModule + "/workflows"},
		{"graphadapter", "go.temporal.io/sdk/temporal"},
		{"workflows", mainModule + "/activities"},
		{"activities", mainModule},
		{"", mainModule + "/cli"},
		{"", "go.temporal.io/server/temporal"},
		{"cli", mainModule + "/workflows"},
		{"worker", mainModule},
	} {
		a, known := arrowOf(below([]string{c.from})[0])
		if !known || a.allows(c.imports) {
			t.Errorf("%q may import %s", c.from, c.imports)
		}
	}
}

func fileText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
