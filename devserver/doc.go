package main

import (
	_ "github.com/gofrs/flock"
	_ "github.com/spf13/cobra"
	_ "github.com/stretchr/testify/require"
	_ "github.com/temporalio/ui-server/v2/server"
	_ "go.temporal.io/api/workflowservice/v1"
	_ "go.temporal.io/sdk/client"
	_ "go.temporal.io/sdk/worker"
	_ "go.temporal.io/server/schema/sqlite"
	_ "go.temporal.io/server/temporal"
	_ "go.uber.org/zap"
	_ "modernc.org/sqlite"
)

func main() {}
