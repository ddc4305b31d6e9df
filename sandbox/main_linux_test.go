//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if order := os.Getenv(driveEnv); order != "" {
		os.Exit(drive(order))
	}
	os.Exit(m.Run())
}

// driveEnv makes the test binary a launcher of one sandbox, so that a test can start one as another user, with open descriptors, or
// kill the launcher.
const driveEnv = "HEARSAY_TEST_DRIVE"

type driveOrder struct {
	Spec  Spec
	Off   layers
	Stdin string // a file to give as standard input; "" gives the driver's own
}

func drive(order string) int {
	os.Unsetenv(driveEnv)
	var o driveOrder
	if err := json.Unmarshal([]byte(order), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	spec := o.Spec
	spec.off = o.Off
	spec.Stdin, spec.Stdout, spec.Stderr = os.Stdin, os.Stdout, os.Stderr
	if o.Stdin != "" {
		f, err := os.Open(o.Stdin)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		spec.Stdin = f
	}
	p, err := Start(context.Background(), spec)
	if err == nil {
		err = p.Go()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	if os.Getenv("HEARSAY_TEST_REPORT") != "" {
		fmt.Fprint(os.Stderr, p.Report())
	}
	exit, err := p.Wait()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 124
	}
	return exit.Status()
}
