// A server on the official TypeScript SDK that does what the public ones do not: write much to standard error, answer with
// very long texts, and tell its environment.
import { pathToFileURL } from "node:url";
import { writeSync } from "node:fs";

const npm = process.argv[2];
const sdk = (path) => import(pathToFileURL(`${npm}/@modelcontextprotocol/sdk/dist/esm/${path}`));
const { McpServer } = await sdk("server/mcp.js");
const { StdioServerTransport } = await sdk("server/stdio.js");
const { z } = await import(pathToFileURL(`${npm}/zod/index.js`));

const server = new McpServer({ name: "realtest", version: "1" });
const text = (s) => ({ content: [{ type: "text", text: s }] });
server.registerTool("stderr", { inputSchema: { bytes: z.number() } }, async ({ bytes }) => {
  const line = Buffer.from("\x1b[31mnoise\x07 ".repeat(100) + "\n");
  for (let left = bytes; left > 0; ) {
    try {
      left -= writeSync(2, line);
    } catch (e) {
      if (e.code !== "EAGAIN") throw e; // the pipe is full at the moment
    }
  }
  return text("written");
});
server.registerTool("big", { inputSchema: { bytes: z.number() } }, async ({ bytes }) => text("line of text\n".repeat(bytes / 13) + "x".repeat(13) + " THE END"));
server.registerTool("length", { inputSchema: { text: z.string() } }, async ({ text: t }) => text(String(t.length)));
server.registerTool("environment", {}, async () => text(Object.keys(process.env).sort().join(",")));
await server.connect(new StdioServerTransport());
