package segment

import (
	"fmt"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// TestStoredTasksComeInPages: of many, each comes once, and no page is more than one event holds.
func TestStoredTasksComeInPages(t *testing.T) {
	found, sizes := map[string]StoredTask{}, map[string]int{"gone": 1}
	req := StoredTasksRequest{ActivityIDs: []string{"gone"}}
	for i := range 40 {
		id := fmt.Sprint("task ", i)
		req.ActivityIDs = append(req.ActivityIDs, id)
		found[id], sizes[id] = StoredTask{Begun: 1, Progress: graphadapter.Progress{Tasks: map[string]pregel.Value{"k": pregel.Value(`1`)}}}, 100<<10
	}
	found["task 7"], sizes["task 7"] = StoredTask{}, maxStoredTasks+1 // goes alone
	seen, pages := map[string]bool{}, 0
	for ; len(req.ActivityIDs) > 0; pages++ {
		page, size := req.Page(found, sizes), 0
		for id := range page.Tasks {
			if seen[id] {
				t.Errorf("%s comes twice", id)
			}
			seen[id] = true
			size += sizes[id]
		}
		if len(page.Tasks) == 0 || size > maxStoredTasks && len(page.Tasks) > 1 {
			t.Fatalf("a page has %d tasks of %d bytes", len(page.Tasks), size)
		}
		req.ActivityIDs = page.Rest
	}
	if len(seen) != 40 || pages < 5 {
		t.Errorf("%d tasks came in %d pages", len(seen), pages)
	}
}

func TestLostExecutionsOfAStoredTask(t *testing.T) {
	for _, c := range []struct {
		task StoredTask
		want bool
	}{
		{StoredTask{}, false},
		{StoredTask{Begun: 1}, true},
		{StoredTask{Begun: 2, Progress: graphadapter.Progress{Losses: graphadapter.Losses{Accounted: 2}}}, false}, // given back
		{StoredTask{Begun: 2, Progress: graphadapter.Progress{Losses: graphadapter.Losses{Accounted: 1}}}, true},
		{StoredTask{Begun: 2, Progress: graphadapter.Progress{Losses: graphadapter.Losses{Accounted: 2}, Lost: true}}, true}, // the first was
	} {
		if got := c.task.Lost(); got != c.want {
			t.Errorf("%+v: lost is %t", c.task, got)
		}
	}
}
