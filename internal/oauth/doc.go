// Package oauth signs a person in to a protected MCP server, and carries the token to that server.
//
// [Account.SignIn] is what `hearsay login` does: it finds the server's authorization server (RFC 9728, RFC 8414), sends the person
// there with a PKCE challenge (RFC 7636, S256 only) for this one resource (RFC 8707), takes the answer on a loopback address, and
// keeps the tokens in a file of the person's. [Account.Transport] is what the gateway does afterwards: it adds the token to requests
// to the server's origin, renews it, and otherwise says that a person has to sign in. Nothing here starts a sign-in by itself.
//
// Metadata, errors and scopes are written by strangers: each document is bounded and read strictly, redirects are not followed, every
// address is judged by the egress dialer before a connection, and what is shown of it is cleaned and cut.
//
// # Limits
//
//   - The server itself gets its token and can do with it what the token allows; that is what scopes are for.
//   - Whom a server names as its authorization server is its own choice unless the operator wrote the issuer. The person sees the
//     host before the browser opens; a person who signs in at an attacker's page has told the attacker what they typed there.
//   - Tokens lie in a file that only the user can read, not encrypted: a program with the user's rights can read them. A token is a
//     bearer's: nothing ties it to this machine (no DPoP, no mutual TLS).
//   - A crash between the authorization server's answer and the file may lose a rotated refresh token; then a person signs in again.
//   - Client credentials, device codes, signed metadata and private keys as client authentication are not spoken.
package oauth
