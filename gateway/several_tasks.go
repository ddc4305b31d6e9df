package gateway

import (
	"context"
	"sync"

	"github.com/seed-4e9f7b04/hearsay/internal/strictjson"
)

// listTasks answers tasks/list (2025-11-25) for all servers together, after a bounded wait. A server that does not run has no
// task that anybody could ask for. A task that two servers have is not shown, see [session.taskOwner].
func (s *session) listTasks(f *flight) (result, failure strictjson.Value) {
	if failure := onePage(f); failure.Kind() != strictjson.KindAbsent {
		return result, failure
	}
	ctx, cancel := context.WithTimeout(f.ctx, s.g.listWait)
	defer cancel()
	found := make([][]strictjson.Value, len(s.servers))
	var asking sync.WaitGroup
	for i, up := range s.servers {
		if up.running() == nil {
			continue
		}
		asking.Go(func() {
			got, err := s.entries(ctx, up, f.Method, strictjson.Value{}, f.version)
			if err != nil {
				s.log.Warn("a server does not say which tasks it has", "server", up.name(), "why", err)
				return
			}
			found[i] = s.ownTasks(up, got.entries)
		})
	}
	asking.Wait()
	for i, up := range s.servers { // whoever lists a task has it, from now on
		for _, task := range found[i] {
			id := task.Get("taskId").Str()
			if !up.hasTask(id) {
				remember(up, up.tasks, id, "")
			}
		}
	}
	var tasks []strictjson.Value
	for i, up := range s.servers {
		for _, task := range found[i] {
			if owner, _ := s.taskOwner(task.Get("taskId").Str()); owner == up {
				tasks = append(tasks, task)
			} else {
				s.counts.withheld.Add(1)
			}
		}
	}
	return strictjson.Object(strictjson.Member{Name: "tasks", Value: strictjson.Array(tasks...)}), failure
}
