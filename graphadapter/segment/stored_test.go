package segment

import (
	"fmt"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// TestStoredTasksComeInPages: of many, each comes once, and no page is more than one event holds.
func TestStoredTasksComeInPages(t *testing.T) {
	found, sizes := map[string]Stored{}, map[string]int{"gone": 1}
	req := StoredRequest{ActivityIDs: []string{"gone"}}
	for i := range 40 {
		id := fmt.Sprint("task ", i)
		req.ActivityIDs = append(req.ActivityIDs, id)
		found[id], sizes[id] = Stored{Begun: 1, Progress: graphadapter.Progress{Tasks: map[string]pregel.Value{"k": pregel.Value(`1`)}}}, 100<<10
	}
	found["task 7"], sizes["task 7"] = Stored{}, maxStored+1 // goes alone
	seen, pages := map[string]bool{}, 0
	for ; len(req.ActivityIDs) > 0; pages++ {
		page, size := req.Page(found, sizes), 0
		for id := range page.Stored {
			if seen[id] {
				t.Errorf("%s comes twice", id)
			}
			seen[id] = true
			size += sizes[id]
		}
		if len(page.Stored) == 0 || size > maxStored && len(page.Stored) > 1 {
			t.Fatalf("a page has %d tasks of %d bytes", len(page.Stored), size)
		}
		req.ActivityIDs = page.Rest
	}
	if len(seen) != 40 || pages < 5 {
		t.Errorf("%d tasks came in %d pages", len(seen), pages)
	}
}

func TestLostExecutionsOfAStoredTask(t *testing.T) {
	for _, c := range []struct {
		task Stored
		want bool
	}{
		{Stored{}, false},
		{Stored{Begun: 1}, true},
		{Stored{Begun: 2, Progress: graphadapter.Progress{Losses: graphadapter.Losses{Accounted: 2}}}, false}, // given back
		{Stored{Begun: 2, Progress: graphadapter.Progress{Losses: graphadapter.Losses{Accounted: 1}}}, true},
		{Stored{Begun: 2, Progress: graphadapter.Progress{Losses: graphadapter.Losses{Accounted: 2}, Lost: true}}, true}, // the first was
	} {
		if got := c.task.Lost(); got != c.want {
			t.Errorf("%+v: lost is %t", c.task, got)
		}
	}
}
