package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/atomicfile"
)

const (
	maxRecord = 1 << 20
	lockWait  = 20 * time.Millisecond // between looks at a lock that another process holds
	recordIs  = 1

	// reserve is room on the disk that is taken before a token is asked for: more than tokens, scopes and addresses at their longest need.
	reserve = 128 << 10
)

// record is what is kept of a sign-in.
type record struct {
	Version            int       `json:"version"`
	Server             string    `json:"server"`
	URL                string    `json:"url"`
	Resource           string    `json:"resource"`
	Issuer             string    `json:"issuer"`
	TokenEndpoint      string    `json:"token_endpoint"`
	RevocationEndpoint string    `json:"revocation_endpoint,omitempty"`
	Client             client    `json:"client"`
	Scopes             []string  `json:"scopes,omitempty"`
	Access             string    `json:"access_token,omitempty"`
	Refresh            string    `json:"refresh_token,omitempty"`
	Expires            time.Time `json:"expires,omitzero"`
	Renew              time.Time `json:"renew,omitzero"` // from when on it is renewed before it is used
	Since              time.Time `json:"since"`
	Lacking            []string  `json:"lacking,omitempty"`
	Ended              string    `json:"ended,omitempty"` // why the tokens no longer count
}

// earlyRenewal is how long before its end a token is renewed: longer than a call is on its way, and at most a quarter of its life.
const earlyRenewal = 30 * time.Second

// take puts a grant into the record. A refresh token that is not replaced stays (RFC 6749 section 6).
func (r *record) take(g grant, now time.Time) {
	r.Version, r.Access, r.Ended = recordIs, g.access, ""
	r.Expires, r.Renew = time.Time{}, time.Time{}
	if g.life > 0 {
		r.Expires = now.Add(g.life)
		r.Renew = r.Expires.Add(-min(earlyRenewal, g.life/4))
	}
	if g.refresh != "" {
		r.Refresh = g.refresh
	}
	if g.scopes != nil {
		r.Scopes = g.scopes
	}
}

// usable reports whether the record's token may be used, and is not the one that was refused.
func (r *record) usable(refused string, now time.Time) bool {
	return r.Access != "" && r.Access != refused && (r.Expires.IsZero() || now.Before(r.Expires))
}

// fresh reports whether it need not be renewed yet.
func (r *record) fresh(refused string, now time.Time) bool {
	return r.usable(refused, now) && (r.Renew.IsZero() || now.Before(r.Renew))
}

// end forgets the tokens and notes why. A registration that no longer counts is not used again.
func (r *record) end(why *Error) {
	r.Access, r.Refresh, r.Expires, r.Renew, r.Ended = "", "", time.Time{}, time.Time{}, why.Error()
	if why.Code == "invalid_client" {
		r.Client.Redirect = "" // the next sign-in registers anew
	}
}

// store is the file of one account. Its name depends on the server's name and address, so that another file's server of the same
// name never gets this one's tokens.
type store struct{ dir, path string }

func newStore(dir, server, url string) store {
	sum := sha256.Sum256([]byte(server + "\x00" + url))
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, server)
	return store{dir, filepath.Join(dir, name[:min(len(name), 40)]+"-"+hex.EncodeToString(sum[:8])+".json")}
}

// read gives the record; nil where there is none. A file that others can read or change is refused: its tokens may be known, or not
// the person's.
func (s store) read() (*record, error) {
	info, err := os.Lstat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the tokens: %w", err)
	}
	if info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice) != 0 { // opening a pipe would wait for its writer
		return nil, fmt.Errorf("the tokens in %s are not used: it is no regular file", s.path)
	}
	f, err := os.Open(s.path)
	if err != nil {
		return nil, fmt.Errorf("reading the tokens: %w", err)
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading the tokens: %w", err)
	}
	if !os.SameFile(info, opened) {
		return nil, fmt.Errorf("reading the tokens: %s is a link, or was exchanged just now", s.path)
	}
	if err := private(opened); err != nil {
		return nil, fmt.Errorf("the tokens in %s are not used: %w", s.path, err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return nil, fmt.Errorf("reading the tokens: %w", err)
	}
	var rec record
	if len(data) > maxRecord || json.Unmarshal(data, &rec) != nil || rec.Version != recordIs {
		return nil, fmt.Errorf("%s cannot be read as tokens; remove it and sign in again", s.path)
	}
	return &rec, nil
}

// slot is the right to change the file, held by one process at a time, with a new file already open and room on the disk taken for
// it: a refresh token that was exchanged must not be lost because the disk is full or the folder is not ours.
type slot struct {
	store store
	lock  *os.File
	next  *atomicfile.File
}

// open waits for the right until ctx ends.
func (s store) open(ctx context.Context) (*slot, error) {
	if err := atomicfile.Folder(s.dir); err != nil {
		return nil, fmt.Errorf("keeping the tokens: %w", err)
	}
	lock, err := os.OpenFile(s.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keeping the tokens: %w", err)
	}
	for {
		held, err := tryLock(lock)
		if err != nil {
			lock.Close()
			return nil, fmt.Errorf("keeping the tokens: %w", err)
		}
		if held {
			break
		}
		select {
		case <-time.After(lockWait):
		case <-ctx.Done():
			lock.Close()
			return nil, fmt.Errorf("waiting for another hearsay that renews the same tokens: %w", context.Cause(ctx))
		}
	}
	atomicfile.Sweep(s.path)
	next, err := atomicfile.Create(s.path)
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("keeping the tokens: %w", err)
	}
	sl := &slot{s, lock, next}
	if _, err = next.Write(make([]byte, reserve)); err == nil {
		err = next.Sync() // some file systems find room only then
	}
	if err != nil {
		sl.close()
		return nil, fmt.Errorf("keeping the tokens: %w", err)
	}
	return sl, nil
}

// save replaces the record: a crash leaves the old one or the new. It is called once.
func (s *slot) save(rec *record) error {
	data, err := json.Marshal(rec)
	if err == nil {
		_, err = s.next.WriteAt(data, 0)
	}
	if err == nil {
		err = s.next.Truncate(int64(len(data)))
	}
	if err == nil {
		err = s.next.Replace()
	}
	if err != nil {
		return fmt.Errorf("keeping the tokens: %w", err)
	}
	return nil
}

func (s *slot) remove() error {
	if err := os.Remove(s.store.path); err != nil {
		return fmt.Errorf("forgetting the tokens: %w", err)
	}
	return atomicfile.SyncDir(s.store.dir)
}

// close gives the right back. The lock file stays: removing it would let two processes hold it.
func (s *slot) close() {
	s.next.Discard() // where it was not saved
	s.lock.Close()
}
