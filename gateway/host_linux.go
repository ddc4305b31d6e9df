package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Host is a process on this machine that runs agents: what a gateway on standard input and output was started by. Its
// number is used again after it ended, its start time is not.
type Host struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks after boot, proc_pid_stat(5) field 22
	Boot  string `json:"boot"`
}

// HostOf tells which process has the number pid now.
func HostOf(pid int) (Host, error) {
	h, _, err := procHost(pid)
	return h, err
}

// Alive reports whether the process still runs.
func (h Host) Alive() bool {
	now, err := HostOf(h.PID)
	return err == nil && now == h
}

// Ancestors lists the processes above pid, nearest first, at most limit. In a container the agent itself may be the first process.
func Ancestors(pid, limit int) ([]Host, error) {
	var out []Host
	_, parent, err := procHost(pid)
	for ; err == nil && parent > 0 && len(out) < limit; err = nil {
		var h Host
		pid = parent
		if h, parent, err = procHost(pid); err == nil {
			out = append(out, h)
		}
	}
	return out, err
}

func procHost(pid int) (h Host, parent int, err error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return h, 0, fmt.Errorf("finding the process: %w", err)
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return h, 0, fmt.Errorf("finding the process: %w", err)
	}
	// The name in parentheses is the process's own choice and may hold anything; the fields stand behind its last one.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return h, 0, errors.New("finding the process: its stat has too few fields")
	}
	if parent, err = strconv.Atoi(fields[1]); err != nil {
		return h, 0, fmt.Errorf("finding the process: %w", err)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return h, 0, fmt.Errorf("finding the process: %w", err)
	}
	return Host{PID: pid, Start: start, Boot: strings.TrimSpace(string(boot))}, parent, nil
}
