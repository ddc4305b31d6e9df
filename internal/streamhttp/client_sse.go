package streamhttp

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/seed-4e9f7b04/hearsay/internal/jsonrpc"
)

// HTTP+SSE, the transport of 2024-11-05: one stream, opened with GET, carries everything the server says; its first event
// names the address that messages are posted to.

// fallBack finds out whether a server that refused initialize is one of 2024-11-05, and sends it there. It reports whether m has its answer.
func (c *Client) fallBack(ctx context.Context, m jsonrpc.Message, refusal *http.Response) bool {
	if answer, err := c.readMessage(refusal.Body); err == nil && answer.Kind == jsonrpc.Response {
		if answer.ID.Key() == m.ID.Key() {
			c.deliver(answer)
			return true
		}
		return false // it speaks JSON-RPC over POST: no server of that time
	}
	c.mu.Lock()
	c.sse = true
	c.mu.Unlock()
	if err := c.openSSE(); err != nil {
		c.mu.Lock()
		c.sse = false
		c.mu.Unlock()
		return false
	}
	resp, err := c.post(ctx, m)
	if err != nil {
		c.unreached(ctx, m.ID, err)
		return true
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		c.refused(resp, m)
	}
	return true
}

// openSSE opens the stream the first time it is called.
func (c *Client) openSSE() error {
	c.opening.Lock()
	defer c.opening.Unlock()
	if c.opened {
		return nil
	}
	base, err := url.Parse(c.opt.URL)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(c.ctx)
	timer := time.AfterFunc(endpointWait, cancel)
	defer timer.Stop()
	resp, err := c.get(ctx, "")
	if err != nil {
		cancel()
		return err
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp) != "text/event-stream" {
		cancel()
		resp.Body.Close()
		return errors.New("no event stream")
	}
	endpoint := make(chan string, 1)
	c.work.Go(func() {
		defer cancel()
		defer resp.Body.Close()
		named := false
		readEvents(resp.Body, c.opt.JSON.MaxBytes, func(e event, err error) bool {
			if !named {
				if e.name == "endpoint" {
					named = true
					endpoint <- e.data
				}
				return c.ctx.Err() == nil
			}
			c.deliverEvent(e, err)
			return c.ctx.Err() == nil
		})
		close(endpoint)
		if named {
			c.end(jsonrpc.ErrClosed) // with the stream the session is gone
		}
	})
	named, ok := <-endpoint
	if !ok {
		return errors.New("the stream named no endpoint")
	}
	at, err := base.Parse(named)
	if err != nil || at.Scheme != base.Scheme || at.Host != base.Host || at.User != nil {
		cancel()
		return errors.New("the stream named an endpoint on another host")
	}
	c.mu.Lock()
	c.endpoint = at.String()
	c.mu.Unlock()
	c.opened = true
	return nil
}
