package graphtest

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestNobodyOvertakesWhatArrives: of two effects that wait for earlier calls at the same time, one lets them arrive, and the
// other must not look for them before they have.
func TestNobodyOvertakesWhatArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutside(&settings{}, false)
		arrive, arrived, waited := make(chan struct{}), false, make(chan error, 2)
		o.fly(func() {
			<-arrive
			arrived = true
		})
		go func() { waited <- o.wait(t.Context(), time.Second) }()
		synctest.Wait() // it is on its way
		go func() { waited <- o.wait(t.Context(), time.Second) }()
		synctest.Wait()
		if len(waited) > 0 {
			t.Error("the second one did not wait")
		}
		close(arrive)
		for range cap(waited) {
			if err := <-waited; err != nil || !arrived {
				t.Errorf("it waited with %v, arrived: %v", err, arrived)
			}
		}
	})
}
