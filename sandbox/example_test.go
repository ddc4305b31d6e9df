package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/seed-4e9f7b04/hearsay/sandbox"
)

// A command without a network, whose output is read. With [sandbox.Egress] the caller would serve Listener, Transparent and DNS between
// Start and Go.
func ExampleStart() {
	p, err := sandbox.Start(context.Background(), sandbox.Spec{
		Args:   []string{"sh", "-c", "ls -A /home; cat /etc/shadow"},
		Limits: sandbox.Limits{Processes: 16},
	})
	var layer *sandbox.LayerError
	if errors.As(err, &layer) {
		fmt.Fprintln(os.Stderr, layer) // names what the machine lacks, and the remedy
		return
	}
	if err != nil {
		panic(err)
	}
	if err := p.Go(); err != nil {
		panic(err)
	}
	go io.Copy(os.Stderr, p.Stderr)
	output, _ := io.ReadAll(p.Stdout)
	exit, err := p.Wait()
	fmt.Printf("%s%v %v\n", output, exit, err)
}

func ExampleReport() {
	r := sandbox.Report{Layers: []sandbox.Layer{{Name: "landlock", State: sandbox.Off}}, Weaker: []sandbox.Weaker{sandbox.NoLandlock}}
	fmt.Println(r.Full())
	fmt.Print(r)
	// Output:
	// false
	// landlock     off
	// weaker mode  no-landlock
}
