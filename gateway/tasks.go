package gateway

import "github.com/seed-4e9f7b04/hearsay/internal/strictjson"

// A server may take all clients of a gateway for one, since they come with the same credentials, and give a task of one to another.
// So what is known of a principal's tasks is what its own calls became, in any of its sessions. A client that is nobody in particular,
// on standard input and output, is alone with the gateway.

// keepTask notes that a call of this client became a task.
func (s *session) keepTask(up *upstream, id string) {
	if s.who == "" || len(id) > maxOpaque {
		return
	}
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	own := s.g.tasks[s.who]
	if own == nil {
		own = map[string]bool{}
		s.g.tasks[s.who] = own
	}
	for old := range own {
		if len(own) < maxRemembered {
			break
		}
		delete(own, old)
	}
	own[taskKey(up, id)] = true
}

// ownsTask says whether a task is the client's.
func (s *session) ownsTask(up *upstream, id string) bool {
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	return s.who == "" || s.g.tasks[s.who][taskKey(up, id)]
}

// taskKey names a task among those of all servers, whose names hold no NUL.
func taskKey(up *upstream, id string) string { return up.name() + "\x00" + id }

// ownTasks leaves the client's own in a server's list of tasks.
func (s *session) ownTasks(up *upstream, tasks []strictjson.Value) (own []strictjson.Value) {
	for _, task := range tasks {
		if s.ownsTask(up, task.Get("taskId").Str()) {
			own = append(own, task)
		} else {
			s.counts.withheld.Add(1)
		}
	}
	return own
}

// ownOnly is the answer to tasks/list with the client's own tasks.
func (s *session) ownOnly(f *flight, up *upstream, result strictjson.Value) strictjson.Value {
	if f.Method != "tasks/list" || s.who == "" {
		return result
	}
	var all []strictjson.Value
	for _, task := range result.Get("tasks").Elems() {
		all = append(all, task)
	}
	return result.With("tasks", strictjson.Array(s.ownTasks(up, all)...))
}
