package proxy

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// meters are the figures of one server. Their labels take few values: clients, protocols and reasons, never a host.
type meters struct {
	on        bool // somebody reads them: labels cost even where nobody counts
	decisions metric.Int64Counter
	opens     metric.Int64UpDownCounter
	closed    metric.Int64Counter
	bytes     metric.Int64Counter
	duration  metric.Float64Histogram
}

// newMeters makes the figures; a nil meter counts nothing.
func newMeters(m metric.Meter) (s meters, err error) {
	if m == nil {
		return s, nil
	}
	s.on = true
	fail := func(e error) {
		if err == nil && e != nil {
			err = fmt.Errorf("making metrics: %w", e)
		}
	}
	var e error
	s.decisions, e = m.Int64Counter("hearsay.egress.decisions", metric.WithDescription("Destinations asked for, by client, protocol, whether allowed, and reason."))
	fail(e)
	s.opens, e = m.Int64UpDownCounter("hearsay.egress.connections", metric.WithDescription("Client connections open now, by client."))
	fail(e)
	s.closed, e = m.Int64Counter("hearsay.egress.closed", metric.WithDescription("Client connections that ended, by client, protocol and reason."))
	fail(e)
	s.bytes, e = m.Int64Counter("hearsay.egress.bytes", metric.WithUnit("By"), metric.WithDescription("Bytes of ended connections, by client and direction."))
	fail(e)
	s.duration, e = m.Float64Histogram("hearsay.egress.duration", metric.WithUnit("s"), metric.WithDescription("How long client connections were open."),
		metric.WithExplicitBucketBoundaries(0.01, 0.1, 1, 10, 60, 600, 3600, 36000))
	fail(e)
	return s, err
}

func (m *meters) event(e Event) {
	if !m.on {
		return
	}
	ctx := context.Background()
	client := attribute.String("client", e.Client)
	protocol := attribute.String("protocol", string(e.Protocol))
	reason := attribute.String("reason", string(e.Reason))
	if e.Kind == KindDecision {
		m.decisions.Add(ctx, 1, metric.WithAttributes(client, protocol, attribute.Bool("allowed", e.Allowed), reason))
		return
	}
	m.closed.Add(ctx, 1, metric.WithAttributes(client, protocol, reason))
	m.bytes.Add(ctx, e.Up, metric.WithAttributes(client, attribute.String("direction", "up")))
	m.bytes.Add(ctx, e.Down, metric.WithAttributes(client, attribute.String("direction", "down")))
	m.duration.Record(ctx, e.Duration.Seconds(), metric.WithAttributes(client))
}

func (m *meters) open(client string, n int64) {
	if !m.on {
		return
	}
	m.opens.Add(context.Background(), n, metric.WithAttributes(attribute.String("client", client)))
}
