package jsonrpc

import "context"

type aboutKey struct{}

// About marks what is written with the returned context as belonging to the open request of the other side with this id: a
// progress notification, a question in the middle of a call. A transport with several streams sends it on that request's.
func About(ctx context.Context, id ID) context.Context {
	return context.WithValue(ctx, aboutKey{}, id)
}

// AboutID gives the id of [About]; the zero ID where there is none.
func AboutID(ctx context.Context) ID {
	id, _ := ctx.Value(aboutKey{}).(ID)
	return id
}
