package transporttest_test

import (
	"testing"

	"superstep.dev"
	"superstep.dev/graphtest/transporttest"
)

func TestLocalTransport(t *testing.T) {
	transporttest.Run(t, func() superstep.Transport { return &superstep.LocalTransport{} })
}
