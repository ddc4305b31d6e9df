//go:build !linux

package gateway

import "errors"

// Host is a process on this machine that runs agents. Only Linux tells here which process it is.
type Host struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
	Boot  string `json:"boot"`
}

var errNoHost = errors.New("finding the process that runs the agent: not on this system; sessions are not kept over restarts, and hearsay hook does not work")

// HostOf gives an error on this system.
func HostOf(int) (Host, error) { return Host{}, errNoHost }

// Alive gives true: what is not known is kept.
func (h Host) Alive() bool { return true }

// Ancestors gives an error on this system.
func Ancestors(int, int) ([]Host, error) { return nil, errNoHost }
