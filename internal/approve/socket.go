package approve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/atomicfile"
)

// A desk listens on a unix socket in a folder that only its user can enter, so that `hearsay approve` finds every desk of
// the user. Sandboxed servers and commands have neither the folder nor unix sockets.

// SocketDir gives the folder of the sockets, making it with mode 0700: $XDG_RUNTIME_DIR/hearsay, or hearsay/run in the user's cache folder.
func SocketDir() (string, error) {
	base := os.Getenv("XDG_RUNTIME_DIR")
	sub := "hearsay"
	if base == "" {
		var err error
		if base, err = os.UserCacheDir(); err != nil {
			return "", fmt.Errorf("finding a folder for the approvals socket: %w; set XDG_RUNTIME_DIR", err)
		}
		sub = filepath.Join("hearsay", "run")
	}
	dir := filepath.Join(base, sub)
	if err := atomicfile.Folder(dir); err != nil {
		return "", fmt.Errorf("the folder for the approvals socket: %w", err)
	}
	return dir, nil
}

// maxSocketPath is the longest path of a unix socket on Linux, without its NUL (unix(7)).
const maxSocketPath = 107

// Serve answers on a socket in dir until ctx ends, and takes the socket away again.
func Serve(ctx context.Context, desk *Desk, dir string) error {
	path := filepath.Join(dir, fmt.Sprintf("approve-%d.sock", os.Getpid()))
	if len(path) > maxSocketPath {
		return fmt.Errorf("the approvals socket %s is %d bytes long, a socket's path may have %d; set XDG_RUNTIME_DIR to a shorter folder", path, len(path), maxSocketPath)
	}
	os.Remove(path) // of an earlier process with our id
	ln, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("listening for hearsay approve: %w", err)
	}
	defer os.Remove(path)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /questions", func(w http.ResponseWriter, _ *http.Request) {
		list := []Waiting{}
		waiting, _ := desk.Waiting()
		for _, p := range waiting {
			list = append(list, Waiting{p.ID, p.Digest, p.Question.Server, p.Question.Tool, p.Question.Session, p.Question.Text(), p.Expires, ""})
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(list)
	})
	mux.HandleFunc("POST /answer", func(w http.ResponseWriter, r *http.Request) {
		var a socketAnswer
		if err := json.NewDecoder(io.LimitReader(r.Body, maxForm)).Decode(&a); err != nil {
			http.Error(w, "the answer cannot be read", http.StatusBadRequest)
			return
		}
		verdict, err := ParseVerdict(a.Verdict)
		if err == nil {
			err = desk.Answer(a.ID, a.Digest, verdict, "terminal")
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving hearsay approve: %w", err)
	}
	return nil
}

// Waiting is a question as the terminal sees it.
type Waiting struct {
	ID      string    `json:"id"`
	Digest  string    `json:"digest"`
	Server  string    `json:"server"`
	Tool    string    `json:"tool"`
	Session string    `json:"session"`
	Text    string    `json:"text"` // everything, escapes made visible
	Expires time.Time `json:"expires"`
	Socket  string    `json:"-"`
}

type socketAnswer struct {
	ID      string `json:"id"`
	Digest  string `json:"digest"`
	Verdict string `json:"verdict"`
}

// List asks every desk in dir what waits. Sockets nobody listens on any more are left out.
func List(ctx context.Context, dir string) ([]Waiting, error) {
	sockets, err := filepath.Glob(filepath.Join(dir, "approve-*.sock"))
	if err != nil {
		return nil, err
	}
	var all []Waiting
	for _, socket := range sockets {
		resp, err := call(ctx, socket, http.MethodGet, "/questions", nil)
		if err != nil {
			continue
		}
		var list []Waiting
		err = json.NewDecoder(io.LimitReader(resp.Body, maxWaiting*8*MaxShown)).Decode(&list)
		resp.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("reading the questions of %s: %w", socket, err)
		}
		for _, w := range list {
			w.Socket = socket
			all = append(all, w)
		}
	}
	return all, nil
}

// Reply answers one question of [List].
func Reply(ctx context.Context, w Waiting, v Verdict) error {
	body, err := json.Marshal(socketAnswer{w.ID, w.Digest, v.String()})
	if err != nil {
		return err
	}
	resp, err := call(ctx, w.Socket, http.MethodPost, "/answer", body)
	if err != nil {
		return fmt.Errorf("answering: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
		return errors.New(string(text))
	}
	return nil
}

func call(ctx context.Context, socket, method, path string, body []byte) (*http.Response, error) {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://desk"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(req)
}
