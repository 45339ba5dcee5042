# syntax=docker/dockerfile:1.7
#
# One image with the three programs. It holds no secret, no shell and no C
# library, and runs as uid 65532 on a read-only file system.

FROM --platform=$BUILDPLATFORM golang:1.26.8 AS build

# GOWORK=off: the workspace also ties in the development server, which is a
# module of its own and not part of a deployment.
ENV CGO_ENABLED=0 \
    GOWORK=off \
    GOTOOLCHAIN=local \
    GOFLAGS="-trimpath -buildvcs=false"
ARG TARGETOS
ARG TARGETARCH
WORKDIR /src

# The modules are a layer of their own: a change of code does not fetch them again.
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod \
    go mod download

COPY . .
RUN --mount=type=cache,target=/go/pkg/mod \
    --mount=type=cache,target=/root/.cache/go-build \
    mkdir -p /out/data && \
    export GOOS=$TARGETOS GOARCH=$TARGETARCH && \
    go build -ldflags="-s -w" -o /out/superstep-worker ./worker && \
    go build -ldflags="-s -w" -o /out/superstep ./cmd/superstep && \
    go build -ldflags="-s -w" -o /out/payments ./examples/refund/payments/cmd

FROM gcr.io/distroless/static-debian12:nonroot

COPY --from=build /out/superstep-worker /out/superstep /out/payments /
# A new volume mounted here takes over this owner, so that uid 65532 can write.
COPY --from=build --chown=65532:65532 /out/data /data

# By number: an orchestrator can then check that it is not root.
USER 65532:65532
WORKDIR /data
CMD ["/superstep", "--help"]
