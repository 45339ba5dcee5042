package heaproom

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

func TestPercentLeavesTheRoom(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, 1600}, {4 << 20, 1600}, {8 << 20, 800}, {16 << 20, 400}, {63 << 20, 101}, {64 << 20, 100}, {1 << 40, 100},
	} {
		if got := percentFor(c.live); got != c.want {
			t.Errorf("%d bytes live: %d percent, want %d", c.live, got, c.want)
		}
	}
}

// TestFollowsWhatLives fills the heap and empties it again.
func TestFollowsWhatLives(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	Give()
	if small := setting(); small <= 2*usual {
		t.Fatalf("%d percent with next to nothing on the heap", small)
	}
	large := make([]byte, 2*room)
	await(t, "the usual for a large heap", func(percent uint64) bool { return percent == usual })
	runtime.KeepAlive(large)
	await(t, "more when it is small again", func(percent uint64) bool { return percent > 2*usual })
}

func TestLeavesWhatSomebodySet(t *testing.T) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(name, func(t *testing.T) {
			began := false
			defer func(was func()) { start = was }(start)
			start = func() { began = true }
			t.Setenv("GOGC", "")
			t.Setenv("GOMEMLIMIT", "")
			t.Setenv(name, "90")
			if Give(); began {
				t.Errorf("%s is set, and another pace too", name)
			}
		})
	}
}

func setting() uint64 {
	set := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(set)
	return set[0].Value.Uint64()
}

// await collects until the setting is as wanted.
func await(t *testing.T, what string, is func(percent uint64) bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(setting()); {
		if time.Now().After(end) {
			t.Fatalf("%d percent: want %s", setting(), what)
		}
		runtime.GC()
	}
}
