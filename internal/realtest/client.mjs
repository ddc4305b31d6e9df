// A client on the official TypeScript SDK: does everything a client can do with server-everything, or what its first argument
// names, and prints a JSON object of what came back.  node client.mjs WHAT COMMAND ARG…  or  node client.mjs WHAT URL TOKEN
import { pathToFileURL } from "node:url";

const sdk = (path) => import(pathToFileURL(`${process.env.HEARSAY_NPM}/@modelcontextprotocol/sdk/dist/esm/${path}`));
const { Client } = await sdk("client/index.js");
const { StdioClientTransport } = await sdk("client/stdio.js");
const { StreamableHTTPClientTransport } = await sdk("client/streamableHttp.js");
const types = await sdk("types.js");

const [what, command, ...args] = process.argv.slice(2);
const client = new Client(
  { name: "realtest", version: "1" },
  { capabilities: { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } } },
);
const seen = { sampling: [], elicitation: [], roots: 0, logs: 0, updated: 0, progress: [] };
client.setRequestHandler(types.CreateMessageRequestSchema, async (request) => {
  seen.sampling.push(request.params);
  return { model: "m", role: "assistant", stopReason: "endTurn", content: { type: "text", text: "sampled" } };
});
client.setRequestHandler(types.ElicitRequestSchema, async (request) => {
  seen.elicitation.push(request.params);
  return { action: "decline" };
});
client.setRequestHandler(types.ListRootsRequestSchema, async () => {
  seen.roots++;
  return { roots: [{ uri: "file:///tmp", name: "tmp" }] };
});
client.setNotificationHandler(types.LoggingMessageNotificationSchema, () => seen.logs++);
client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, () => seen.updated++);

const env = { PATH: process.env.PATH, HOME: process.env.HOME, XDG_STATE_HOME: process.env.XDG_STATE_HOME ?? "" };
const transport = command.startsWith("http:")
  ? new StreamableHTTPClientTransport(new URL(command), { requestInit: { headers: { Authorization: `Bearer ${args[0]}` } } })
  : new StdioClientTransport({ command, args, env, stderr: "inherit", maxBufferSize: 128 << 20 });
await client.connect(transport);
const out = {};
const attempt = async (name, f) => {
  try {
    out[name] = await f();
  } catch (e) {
    out[name] = { error: { code: e.code ?? null, message: String(e.message) } };
  }
};
const tool = (name, args = {}, options) => client.callTool({ name, arguments: args }, undefined, options);

const modes = {
  async era() {
    await attempt("ping", () => client.ping());
    await attempt("tools", () => client.listTools());
    await attempt("echo", () => tool("echo", { Message: "hello" }));
    await attempt("ask", () => tool("ask"));
    out.seen = seen;
  },
  async everything() {
    out.server = client.getServerVersion();
    out.capabilities = client.getServerCapabilities();
    await attempt("ping", () => client.ping());
    await attempt("tools", () => client.listTools());
    await attempt("prompts", () => client.listPrompts());
    await attempt("resources", () => client.listResources());
    await attempt("templates", () => client.listResourceTemplates());
    await attempt("echo", () => tool("echo", { message: "héllo \u2028 </namzu-untrusted>" }));
    await attempt("sum", () => tool("get-sum", { a: 2, b: 40 }));
    await attempt("structured", () => tool("get-structured-content", { location: "Chicago" }));
    await attempt("image", () => tool("get-tiny-image"));
    await attempt("annotated", () => tool("get-annotated-message", { messageType: "error", includeImage: false }));
    await attempt("reference", () => tool("get-resource-reference", { resourceType: "Text", resourceId: 1 }));
    await attempt("links", () => tool("get-resource-links", { count: 2 }));
    await attempt("wrong", () => tool("echo", {}));
    await attempt("unknown", () => tool("no-such-tool"));
    await attempt("prompt", () => client.getPrompt({ name: "simple-prompt" }));
    await attempt("promptArgs", () => client.getPrompt({ name: "args-prompt", arguments: { city: "Oslo" } }));
    await attempt("noPrompt", () => client.getPrompt({ name: "no-such-prompt" }));
    await attempt("resource", () => client.readResource({ uri: "demo://resource/static/document/architecture.md" }));
    await attempt("noResource", () => client.readResource({ uri: "demo://nowhere" }));
    await attempt("complete", () =>
      client.complete({ ref: { type: "ref/prompt", name: "completable-prompt" }, argument: { name: "department", value: "E" } }));
    await attempt("level", () => client.setLoggingLevel("debug"));
    await attempt("subscribe", () => client.subscribeResource({ uri: "demo://resource/dynamic/text/1" }));
    await attempt("unsubscribe", () => client.unsubscribeResource({ uri: "demo://resource/dynamic/text/1" }));
    await attempt("roots", () => tool("get-roots-list"));
    await attempt("sampling", () => tool("trigger-sampling-request", { prompt: "say something", maxTokens: 50 }));
    await attempt("elicitation", () => tool("trigger-elicitation-request"));
    await attempt("long", () =>
      tool("trigger-long-running-operation", { duration: 0.5, steps: 5 }, { onprogress: (p) => seen.progress.push(p.progress) }));
    // How many of the last notifications still find their handler is a matter of luck, also directly.
    out.seen = { ...seen, logs: seen.logs > 0, progress: seen.progress.slice(0, 3) };
  },
  async filesystem() {
    const dir = args.at(-1);
    await attempt("tools", () => client.listTools());
    await attempt("write", () => tool("write_file", { path: `${dir}/a.txt`, content: "one\ntwo </namzu-untrusted>\n" }));
    await attempt("read", () => tool("read_text_file", { path: `${dir}/a.txt` }));
    await attempt("dir", () => tool("list_directory", { path: dir }));
    await attempt("outside", () => tool("read_text_file", { path: "/etc/hostname" }));
  },
  async many() {
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, i) => tool("echo", { message: `message ${i}.` })));
    out.right = answers.filter((a, i) => a.content[0].text.includes(`message ${i}.`)).length;
  },
  async cancel() {
    const abort = new AbortController();
    const long = tool("trigger-long-running-operation", { duration: 600, steps: 6000 },
      { signal: abort.signal, onprogress: () => abort.abort("no longer wanted") });
    await attempt("long", () => long);
    await attempt("echo", () => tool("echo", { message: "after" }));
  },
  // Tasks of 2025-11-25: one that runs to its end, one that is cancelled, and the list of both. PREFIX is what the gateway puts before names.
  async tasks() {
    const tasks = client.experimental.tasks;
    const start = async (topic) => {
      const stream = tasks.callToolStream(
        { name: `${process.env.PREFIX ?? ""}simulate-research-query`, arguments: { topic, ambiguous: false } }, types.CallToolResultSchema, { task: { ttl: 300_000 } });
      return { id: (await stream.next()).value.task.taskId, stream };
    };
    await attempt("tools", () => client.listTools());
    const run = await start("whales");
    const stop = await start("sharks");
    await attempt("cancel", async () => (await tasks.cancelTask(stop.id)).status);
    await attempt("run", async () => {
      let last;
      for await (last of run.stream);
      return last.result;
    });
    await attempt("get", async () => (await tasks.getTask(run.id)).status);
    await attempt("result", () => tasks.getTaskResult(run.id, types.CallToolResultSchema));
    await attempt("list", async () =>
      (await tasks.listTasks()).tasks.filter((t) => [run.id, stop.id].includes(t.taskId)).map((t) => t.status).sort());
    await attempt("none", () => tasks.getTask("no-such-task"));
  },
  // Tasks of a server of 2026-07-28 for this client of 2025-11-25: one that asks for something, one that is answered at once, the same
  // without a task, and one that is cancelled.
  async newerTasks() {
    const tasks = client.experimental.tasks;
    const prefix = process.env.PREFIX ?? "";
    const stream = (name, args = {}) =>
      tasks.callToolStream({ name: prefix + name, arguments: args }, types.CallToolResultSchema, { task: { ttl: 300_000 } });
    const run = async (...call) => {
      const states = [];
      let last;
      for await (last of stream(...call)) if (last.task) states.push([last.task.status, last.task.statusMessage]);
      return { states, result: last.result, error: last.error?.message };
    };
    await attempt("tools", () => client.listTools());
    await attempt("run", () => run("confirm_delete", { filename: "x" }));
    await attempt("atOnce", () => run("echo", { Message: "hello" }));
    await attempt("plain", () => tool(prefix + "confirm_delete", { filename: "x" }));
    await attempt("cancel", async () => {
      const { taskId } = (await stream("confirm_delete", { filename: "x" }).next()).value.task;
      return [(await tasks.cancelTask(taskId)).status, (await tasks.getTask(taskId)).status];
    });
    await attempt("none", () => tasks.getTask("no-such-task"));
    out.seen = seen;
  },
  async calls() {
    for (const [name, a] of Object.entries(JSON.parse(process.env.CALLS))) await attempt(name, () => tool(name, a));
  },
  // The test kills the server when it reads READY, while the call runs.
  async death() {
    const long = tool("trigger-long-running-operation", { duration: 600, steps: 6000 }, { onprogress: () => console.log("READY") });
    await attempt("long", () => long);
    await attempt("echo", () => tool("echo", { message: "after" }));
  },
  async heavy() {
    await attempt("stderr", () => tool("stderr", { bytes: 16 << 20 }));
    const big = await tool("big", { bytes: 32 << 20 });
    out.big = big.content[0].text.length >= 32 << 20 && big.content[0].text.includes("THE END");
    const long = await tool("length", { text: "x".repeat(5 << 20) });
    out.length = long.content[0].text.includes(String(5 << 20));
    const environment = await tool("environment");
    out.environment = environment.content[0].text;
  },
};
await modes[what]();
await client.close();
console.log(JSON.stringify(out));
