package transporttest_test

import (
	"testing"

	"superstep.dev/graphtest/transporttest"
	"superstep.dev/thread/live"
)

func TestLocalTransport(t *testing.T) {
	transporttest.Run(t, func() live.Transport { return &live.Local{} })
}
