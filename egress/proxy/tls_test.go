package proxy_test

import (
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"
)

// helloBytes are those of a real ClientHello for a name; "" leaves the name out.
func helloBytes(t testing.TB, name string) []byte {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	go func() { _ = tls.Client(a, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake() }()
	_ = b.SetReadDeadline(time.Now().Add(time.Minute))
	head := make([]byte, 5)
	if _, err := io.ReadFull(b, head); err != nil {
		t.Fatal(err)
	}
	rest := make([]byte, int(head[3])<<8|int(head[4]))
	if _, err := io.ReadFull(b, rest); err != nil {
		t.Fatal(err)
	}
	return append(head, rest...)
}
