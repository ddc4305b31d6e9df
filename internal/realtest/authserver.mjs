// A protected server on the official TypeScript SDK, with the SDK's own authorization server and bearer check. What a line on standard
// input says happens to the tokens; each is answered with a line.
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { randomUUID } from "node:crypto";
import { pathToFileURL } from "node:url";

const npm = process.argv[2];
const load = (path) => import(pathToFileURL(`${npm}/${path}`));
const sdk = (path) => load(`@modelcontextprotocol/sdk/dist/esm/${path}`);
const express = (await load("express/index.js")).default;
const { mcpAuthRouter, getOAuthProtectedResourceMetadataUrl } = await sdk("server/auth/router.js");
const { requireBearerAuth } = await sdk("server/auth/middleware/bearerAuth.js");
const { InvalidGrantError, InvalidTokenError } = await sdk("server/auth/errors.js");
const { McpServer } = await sdk("server/mcp.js");
const { StreamableHTTPServerTransport } = await sdk("server/streamableHttp.js");

const clients = new Map(), codes = new Map(), access = new Map(), refresh = new Map(), given = [];
const life = 3600;
let needs = [];

function grant(client, scopes, resource) {
  const token = `access-${randomUUID()}`, renewal = `refresh-${randomUUID()}`;
  given.push(token, renewal);
  access.set(token, { token, clientId: client.client_id, scopes, resource, expiresAt: Math.floor(Date.now() / 1000) + life });
  refresh.set(renewal, { scopes, resource });
  return { access_token: token, token_type: "bearer", expires_in: life, refresh_token: renewal, scope: scopes.join(" ") };
}

const provider = {
  clientsStore: { getClient: (id) => clients.get(id), registerClient: (c) => (clients.set(c.client_id, c), c) },
  async authorize(client, params, res) {
    const code = randomUUID(), back = new URL(params.redirectUri);
    codes.set(code, params);
    back.searchParams.set("code", code);
    if (params.state !== undefined) back.searchParams.set("state", params.state);
    res.redirect(back.href);
  },
  async challengeForAuthorizationCode(_client, code) {
    if (!codes.has(code)) throw new InvalidGrantError("no such code");
    return codes.get(code).codeChallenge;
  },
  async exchangeAuthorizationCode(client, code, _verifier, redirectUri, resource) {
    const params = codes.get(code);
    codes.delete(code);
    if (!params || redirectUri !== params.redirectUri || resource?.href !== params.resource?.href) throw new InvalidGrantError("not what was authorized");
    return grant(client, params.scopes ?? [], resource);
  },
  async exchangeRefreshToken(client, token, _scopes, resource) {
    const was = refresh.get(token);
    if (!refresh.delete(token) || resource?.href !== was.resource?.href) throw new InvalidGrantError("the grant was taken back");
    return grant(client, was.scopes, resource);
  },
  async verifyAccessToken(token) {
    if (!access.has(token)) throw new InvalidTokenError("no such token");
    return access.get(token);
  },
  async revokeToken(_client, { token }) {
    refresh.delete(token);
    access.clear();
  },
};

const http = createServer();
http.listen(0, "127.0.0.1", () => {
  const origin = new URL(`http://127.0.0.1:${http.address().port}`), mcp = new URL("/mcp", origin);
  const app = express();
  app.use(express.json());
  app.use(mcpAuthRouter({ provider, issuerUrl: origin, resourceServerUrl: mcp, scopesSupported: ["notes"] }));
  const metadata = getOAuthProtectedResourceMetadataUrl(mcp);
  const check = (req, res, next) => requireBearerAuth({ verifier: provider, requiredScopes: needs, resourceMetadataUrl: metadata, expectedResource: mcp })(req, res, next);
  app.post("/mcp", check, async (req, res) => {
    const server = new McpServer({ name: "protected", version: "1" });
    server.registerTool("whoami", {}, async () => ({ content: [{ type: "text", text: `client ${req.auth.clientId}, scopes ${req.auth.scopes.join(" ")}` }] }));
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    res.on("close", () => server.close());
    await server.connect(transport);
    await transport.handleRequest(req, res, req.body);
  });
  app.all("/mcp", check, (_req, res) => res.status(405).end());
  http.on("request", app);
  console.log(mcp.href);
});

createInterface({ input: process.stdin }).on("line", (line) => {
  const [what, ...rest] = line.split(" ");
  if (what === "expire") access.clear();
  if (what === "revoke") access.clear(), refresh.clear();
  if (what === "need") needs = rest;
  console.log(what === "given" ? given.join(" ") : "done");
}).on("close", () => process.exit(0));
