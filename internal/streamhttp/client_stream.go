package streamhttp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
)

// Bounds of a stream of the server's.
const (
	minRetry   = 100 * time.Millisecond
	maxRetry   = 30 * time.Second
	maxResumes = 8 // in a row without a new event
)

// follow reads the stream that answers m, and takes it up again where the server allows that.
func (c *Client) follow(ctx context.Context, resp *http.Response, m jsonrpc.Message) {
	var last string
	retry := time.Second
	resumes := 0
	for {
		done := false
		// How the stream ended does not matter: it is taken up again or the request has failed.
		readEvents(resp.Body, c.opt.JSON.MaxBytes, func(e event, err error) bool {
			if e.hasID {
				last, resumes = e.id, 0
			}
			if e.retry > 0 {
				retry = min(max(e.retry, minRetry), maxRetry)
			}
			msg, err := c.eventMessage(e, err)
			switch {
			case err != nil:
				var bad *jsonrpc.BadMessage
				if errors.As(err, &bad) && !bad.Request && bad.ID().Key() == m.ID.Key() {
					done = true
				}
				c.put(incoming{err: err})
			case msg.Kind == 0:
			case msg.Kind == jsonrpc.Response && msg.ID.Key() == m.ID.Key():
				c.answered(m, msg)
				done = true
			default:
				if msg.Kind != jsonrpc.Response {
					msg.On = m.ID
				}
				c.deliver(msg)
			}
			return !done && c.ctx.Err() == nil
		})
		resp.Body.Close()
		if done {
			return
		}
		if ctx.Err() != nil {
			c.fail(m.ID, "the request was cancelled")
			return
		}
		if last == "" || versionOf(m) != "" || resumes >= maxResumes {
			c.fail(m.ID, "the server's stream ended before its answer")
			return
		}
		next := c.resume(ctx, last, retry, &resumes)
		if next == nil {
			c.fail(m.ID, "the server's stream ended before its answer")
			return
		}
		resp = next
	}
}

// resume asks for the rest of a stream until the server gives it; nil when it will not.
func (c *Client) resume(ctx context.Context, last string, retry time.Duration, tries *int) *http.Response {
	for *tries < maxResumes && sleep(ctx, retry) {
		*tries++
		resp, err := c.get(ctx, last)
		if err != nil {
			continue
		}
		if resp.StatusCode == http.StatusOK && mediaType(resp) == "text/event-stream" {
			return resp
		}
		resp.Body.Close()
		if resp.StatusCode/100 == 4 {
			return nil
		}
	}
	return nil
}

// listen keeps the stream open on which an older server sends what belongs to no request.
func (c *Client) listen() {
	var last string
	retry := time.Second
	opened := false // 404 before means what 405 does: many a server routes POST only
	for failures := 0; c.ctx.Err() == nil && failures < maxResumes; failures++ {
		resp, err := c.get(c.ctx, last)
		c.settle()
		if err == nil && resp.StatusCode == http.StatusOK && mediaType(resp) == "text/event-stream" {
			opened = true
			readEvents(resp.Body, c.opt.JSON.MaxBytes, func(e event, err error) bool {
				failures = 0
				if e.hasID {
					last = e.id
				}
				if e.retry > 0 {
					retry = min(max(e.retry, minRetry), maxRetry)
				}
				c.deliverEvent(e, err)
				return c.ctx.Err() == nil
			})
		}
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusNotFound && opened {
				c.end(jsonrpc.ErrClosed) // the session is gone
				return
			}
			if resp.StatusCode != http.StatusOK {
				return // the server has no such stream
			}
		}
		if !sleep(c.ctx, min(retry<<failures, maxRetry)) {
			return
		}
	}
}

func (c *Client) get(ctx context.Context, lastEvent string) (*http.Response, error) {
	c.mu.Lock()
	endpoint := c.endpoint
	c.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
	if err != nil {
		return nil, err
	}
	c.stamp(req.Header)
	req.Header.Set("Accept", "text/event-stream")
	if lastEvent != "" {
		req.Header.Set(headerLastEvent, lastEvent)
	}
	return c.http.Do(req)
}

// eventMessage reads the message of an event; the zero message for an event that carries none.
func (c *Client) eventMessage(e event, err error) (jsonrpc.Message, error) {
	if err != nil {
		return jsonrpc.Message{}, jsonrpc.TooLarge(e.data)
	}
	if (e.name != "" && e.name != "message") || e.data == "" {
		return jsonrpc.Message{}, nil
	}
	return jsonrpc.DecodeText(e.data, c.opt.JSON)
}

func (c *Client) deliverEvent(e event, err error) {
	m, err := c.eventMessage(e, err)
	switch {
	case err != nil:
		c.put(incoming{err: err})
	case m.Kind != 0:
		c.deliver(m)
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
