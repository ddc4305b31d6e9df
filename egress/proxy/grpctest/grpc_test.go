// Package grpctest puts gRPC's own client through the egress proxy. It is a module of its own, so that gRPC is no dependency
// of hearsay:
//
//	cd egress/proxy/grpctest && go test .
package grpctest

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

const rules = `
egress:
  allow: ["ok.case.localhost:*"]
  inward: {"ok.case.localhost:*": ["127.0.0.1", "::1"]}
`

// TestGRPC makes a unary call and keeps a stream open through a tunnel, and is refused for another host.
func TestGRPC(t *testing.T) {
	dir := t.TempDir()
	binary, file := filepath.Join(dir, "hearsay"), filepath.Join(dir, "hearsay.yaml")
	build := exec.Command("go", "build", "-o", binary, "./cmd/hearsay")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building hearsay: %v\n%s", err, out)
	}
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	p := exec.Command(binary, "egress", "-c", file, "--listen", "127.0.0.1:0")
	stdout, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Process.Kill(); _ = p.Wait() }()
	var started struct{ Addr string }
	if err := json.NewDecoder(stdout).Decode(&started); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HTTPS_PROXY", "http://"+started.Addr) // read once, before the first call
	t.Setenv("NO_PROXY", "")

	cert, pool := selfSigned(t, "ok.case.localhost", "evil.case.localhost")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&cert)))
	state := health.NewServer()
	healthpb.RegisterHealthServer(server, state)
	go func() { _ = server.Serve(l) }()
	defer server.Stop()
	_, port, _ := net.SplitHostPort(l.Addr().String())

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dial := func(host string) healthpb.HealthClient {
		cc, err := grpc.NewClient(host+":"+port, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool})))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cc.Close() })
		return healthpb.NewHealthClient(cc)
	}
	c := dial("ok.case.localhost")
	if r, err := c.Check(ctx, &healthpb.HealthCheckRequest{}); err != nil || r.Status != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("%v, %v", r, err)
	}
	w, err := c.Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []healthpb.HealthCheckResponse_ServingStatus{healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING} {
		r, err := w.Recv()
		if err != nil || r.Status != want {
			t.Fatalf("the stream says %v, %v; want %v", r, err, want)
		}
		state.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	}
	if _, err := dial("evil.case.localhost").Check(ctx, &healthpb.HealthCheckRequest{}); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("another host: %v", err)
	}
	// That nothing went round the proxy shows in its log.
	lines := bufio.NewScanner(stderr)
	for _, want := range []string{`"allowed":true`, `"allowed":false`} {
		for lines.Scan() && !strings.Contains(lines.Text(), want) {
		}
		if !strings.Contains(lines.Text(), `"protocol":"connect"`) {
			t.Errorf("no decision with %s in the proxy's log", want)
		}
	}
}

func selfSigned(t *testing.T, names ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}
