package era

import (
	"sync"
	"time"
)

// believe is how long what was learnt of a server holds: it may be replaced by one of another era while its clients stay.
const believe = time.Hour

// Memory is what is known of one server's eras. The zero value knows nothing. It may be shared by any number of bridges to that
// server.
type Memory struct {
	mu     sync.Mutex
	modern known // it answers server/discover
	legacy known // it takes initialize
	at     time.Time
}

type known uint8

const (
	unknown known = iota
	yes
	no
)

// get returns what is known.
func (m *Memory) get() (modern, legacy known) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.at) > believe {
		return unknown, unknown
	}
	return m.modern, m.legacy
}

// note replaces what is known where something is.
func (m *Memory) note(modern, legacy known) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.at) > believe {
		m.modern, m.legacy = unknown, unknown
	}
	if modern != unknown {
		m.modern = modern
	}
	if legacy != unknown {
		m.legacy = legacy
	}
	m.at = time.Now()
}

func (m *Memory) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.modern, m.legacy = unknown, unknown
}
