//go:build !unix

package gateway

import (
	"errors"
	"os"
)

var errHeld = errors.New("the lock is held")

// tryLock refuses: without a lock two gateways could each keep half of what a session has read.
func tryLock(*os.File) error { return errors.New("sessions cannot be kept on this system") }
