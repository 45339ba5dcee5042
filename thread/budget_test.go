package thread_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"superstep.dev/thread"
)

func TestABudgetIsReadFromText(t *testing.T) {
	for text, want := range map[string]thread.Budget{
		"tokens=10000,money=2.5USD,writes=3,time=10m,supersteps=100": {Tokens: 10_000, MicroUSD: 2_500_000, Writes: 3, Time: 10 * time.Minute, Supersteps: 100},
		" time=1.5s , tokens=1":    {Tokens: 1, Time: 1500 * time.Millisecond},
		"money=0.000001USD":        {MicroUSD: 1},
		"money=1000000000USD":      {MicroUSD: 1e15},
		"supersteps=1000000000000": {Supersteps: 1e12},
	} {
		if b, err := thread.ParseBudget(text); err != nil || b != want {
			t.Errorf("%q is read as %+v, %v", text, b, err)
		}
	}
}

// TestABudgetThatIsNoneIsRefused: what is no number, no unit, or more than can be counted.
func TestABudgetThatIsNoneIsRefused(t *testing.T) {
	for _, text := range []string{
		"", ",", "tokens", "tokens=", "tokens=-1", "tokens=0", "tokens=1.5", "tokens=NaN", "tokens=1e3", "tokens=9223372036854775808",
		"tokens=1000000000000001", "tokens=1,tokens=2", "gold=3", "money=2.5", "money=2.5EUR", "money=-1USD", "money=NaNUSD", "money=InfUSD",
		"money=0USD", "money=0.0000001USD", "money=.5USD", "money=1.USD", "money=1000000001USD", "money=99999999999999999999USD",
		"money=1.-5USD", "money=+1USD", "time=10", "time=-1s", "time=0s", "time=1us", "time=1e400h", "writes=3 supersteps=4", strings.Repeat("x", 1000),
	} {
		if b, err := thread.ParseBudget(text); !errors.Is(err, thread.ErrBadInput) || b != (thread.Budget{}) {
			t.Errorf("%.40q is read as %+v, %v", text, b, err)
		}
	}
}
