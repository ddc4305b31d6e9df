//go:build !unix

package proxy

func defaultConnections() int { return mostConnections }
