# The commands of the project. Only Go is needed; make race also wants a C compiler.
GO ?= go
BIN := bin
FIRST := first time: compiling the embedded Temporal server takes four to seven minutes on two cores, once

.PHONY: help demo demo-research dev chat test verify race check tools build bench peers streams chaos soak interop clean

# How often make chaos kills a worker, and freezes an attempt of each kind of target.
N ?= 1000
FREEZES ?= 100
# How many calls are frozen while they prepare.
LATE ?= 200

# How long the thread of make soak is, how often it asks, and how often a worker is killed.
SUPERSTEPS ?= 20000
QUESTIONS ?= 200
EVERY ?= 30s

# A Python that has LangGraph, and a folder whose node_modules have LangGraph.js, for make peers; without them they are left out.
LANGGRAPH ?=
LANGGRAPHJS ?=

# For make streams: the langgraph command that starts the reference server; without it that is left out.
REFERENCE ?=

# For make interop: a folder with a run.py and a run.mjs to run too, the database (sqlite or postgres), how often everything is run, and
# the interval between two kills of worker and server, 0 for none; with kills scenarios whose names match EXCEPT may fail.
KIT ?=
STORE ?= sqlite
ROUNDS ?= 1
KILL ?= 0
EXCEPT ?=

help:
	@echo 'make demo    a refund, a question, a killed worker, exactly one refund: one command, one terminal'
	@echo 'make demo-research   four experts, a data set, a question, a killed worker, one report'
	@echo 'make dev     the same processes, up until Ctrl-C'
	@echo 'make chat    an agent to talk to, on a page of its own: words as they come, a question, an approval, one refund'
	@echo 'make test    formatting, vet, determinism, and the tests, against a real server: six minutes'
	@echo 'make verify  staticcheck, and the tests that take long: processes that are killed, documented commands, matrices'
	@echo 'make race    the tests once more, with the race detector'
	@echo 'make bench   figures as ratios, as a table and as JSON'
	@echo 'make streams what readers of superstep serve wait for (REFERENCE=folder/bin/langgraph for the reference server); ten minutes'
	@echo 'make peers   what users wait, beside hand-written workflows and LangGraph (LANGGRAPH=python LANGGRAPHJS=folder); an hour and a half'
	@echo 'make chaos   workers killed and frozen under the refund example, N times ($(N)); twenty minutes, N=20 two'
	@echo 'make soak    one thread of $(SUPERSTEPS) supersteps whose workers are killed; a quarter of an hour, SUPERSTEPS=2000 QUESTIONS=20 two minutes'
	@echo 'make interop the clients of LangGraph, installed from PyPI and npm, against superstep serve; two minutes'
	@echo 'make build   the commands, in ./bin'
	@echo '($(FIRST))'

# Built and run, not "go run": that one does not pass on the signal that ends it.
demo dev:
	@mkdir -p $(BIN) && $(GO) build -o $(BIN)/$@ ./examples/refund/$@ && exec $(BIN)/$@

chat:
	@mkdir -p $(BIN) && $(GO) build -o $(BIN)/$@ ./examples/chat/dev && exec $(BIN)/$@ $(if $(ORIGIN),--origin $(ORIGIN))

demo-research:
	@mkdir -p $(BIN) && $(GO) build -o $(BIN)/$@ ./examples/research/demo && exec $(BIN)/$@

# The server is another process, started once for the whole run. Most tests wait for it most of the time, so more of them
# run at once than there are processors. What go test would vet, check has vetted.
TESTED := $(GO) run ./test/run -- $(GO) test -timeout 25m
AT_ONCE := -vet=off -p 3 -parallel 6

# Packages with tests that take long: with -short they skip those, or take a smaller sample. make test runs every package
# with -short, and make verify runs these without, so that both together run everything.
LONG := ./activities ./devserver ./docs ./examples/agent ./examples/chat ./examples/chat/dev ./examples/publish ./examples/refund \
	./examples/refund/demo ./examples/refund/dev ./examples/research/demo ./test/bench/peers ./test/chaos ./test/conformance ./test/conformance/recorder ./test/e2e ./test/serve ./test/soak ./test/store \
	./test/thread ./thread/live/nats ./thread/storage/s3 ./workflows

# The test that fills the machine by itself, to count what its own load does, has no other beside it.
ALONE := ^TestBusyIsNotAbsent$$

test: check
	@echo '== tests ($(FIRST))'
	$(TESTED) $(AT_ONCE) -short ./... ./devserver

verify: tools
	@echo '== staticcheck'
	$(BIN)/staticcheck ./...
	@echo '== tests that take long ($(FIRST))'
	$(TESTED) $(AT_ONCE) -skip '$(ALONE)' $(LONG)
	$(TESTED) -vet=off -run '$(ALONE)' ./test/e2e

# What shares memory between goroutines is watched while it is tested: all of it takes three quarters of an hour.
race:
	$(TESTED) -race ./...

check: tools
	@echo '== formatting, vet, workflowcheck'
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); if [ -n "$$unformatted" ]; then echo "not gofmt-ed: $$unformatted"; exit 1; fi
	$(GO) vet ./... ./devserver ./examples/wire
	$(BIN)/workflowcheck -show-pos -config test/tools/workflowcheck.config.yaml ./workflows/... ./graphadapter/pregel/... ./graphadapter/ledger/... ./graphadapter/life/... ./serve/...

tools:
	@mkdir -p $(BIN)
	@cd test/tools && GOWORK=off $(GO) build -o ../../$(BIN)/ honnef.co/go/tools/cmd/staticcheck go.temporal.io/sdk/contrib/tools/workflowcheck

build:
	@echo '== build ($(FIRST))'
	@mkdir -p $(BIN)
	$(GO) build -o $(BIN)/devserver ./devserver
	$(GO) build -o $(BIN)/payments ./examples/refund/payments/cmd
	$(GO) build -o $(BIN)/worker ./worker
	$(GO) build -o $(BIN)/starter ./starter
	$(GO) build -o $(BIN)/superstep ./cmd/superstep

bench:
	$(GO) run ./test/bench

streams:
	$(GO) run ./test/bench/streams -reference '$(REFERENCE)'

peers:
	@mkdir -p $(BIN) && $(GO) build -o $(BIN)/$@ ./test/bench/peers && exec $(BIN)/$@ -langgraph '$(LANGGRAPH)' -langgraphjs '$(LANGGRAPHJS)'

# Built and run, as the demo is. FREEZES and LATE follow a smaller N.
chaos:
	@mkdir -p $(BIN) && $(GO) build -o $(BIN)/chaos ./test/chaos
	exec $(BIN)/chaos -n $(N) -freezes $(shell [ $(N) -lt $(FREEZES) ] && echo $(N) || echo $(FREEZES)) \
		-late $(shell [ $(N) -lt $(LATE) ] && echo $(N) || echo $(LATE))

soak:
	@mkdir -p $(BIN) && $(GO) build -o $(BIN)/soak ./test/soak
	exec $(BIN)/soak -supersteps $(SUPERSTEPS) -questions $(QUESTIONS) -every $(EVERY)

interop:
	@mkdir -p $(BIN) && $(GO) build -o $(BIN)/$@ ./test/interop
	exec $(BIN)/$@ -kit '$(KIT)' -store $(STORE) -rounds $(ROUNDS) -kill $(KILL) -except '$(EXCEPT)'

clean:
	rm -rf $(BIN) .interop .demo .dev .chat test/bench/results
