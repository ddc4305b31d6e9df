//go:build !linux

package gateway

import "os/exec"

func startGroup(cmd *exec.Cmd) (wait func(), err error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() { cmd.Wait() }, nil
}

func signalGroup(cmd *exec.Cmd, kill bool) { cmd.Process.Kill() }

func widen(any) {}
