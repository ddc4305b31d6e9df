// A client of 2026-07-28 on the official tasks extension: calls one tool, follows its task, answers what it asks, and prints a JSON
// object of what came.  node tasks.mjs TOOL ARGUMENTS COMMAND ARG…
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { withTasks, resultFromTaskOutcome } = await import(
  pathToFileURL(`${process.env.HEARSAY_NPM}/@modelcontextprotocol/ext-tasks/dist/client/index.js`));

const [tool, text, command, ...args] = process.argv.slice(2);
const server = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const meta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "realtest", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} }, extensions: { "io.modelcontextprotocol/tasks": {} } },
};
const open = new Map();
const listeners = { notification: [], invalidated: [] };
let ids = 0;
let invalidated = false;
createInterface({ input: server.stdout }).on("line", (line) => {
  const m = JSON.parse(line);
  if (m.method !== undefined) return m.id === undefined && listeners.notification.forEach((f) => f(m));
  open.get(m.id)?.(m.error === undefined ? { kind: "result", result: m.result } : { kind: "error", error: m.error });
  open.delete(m.id);
});
server.on("exit", () => {
  invalidated = true;
  listeners.invalidated.forEach((f) => f(new Error("the server has ended")));
});
const dispatch = ({ method, params = {} }) =>
  new Promise((resolve) => {
    const id = ++ids;
    open.set(id, resolve);
    server.stdin.write(JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, _meta: { ...params._meta, ...meta } } }) + "\n");
  });
const listen = (list) => (f) => {
  list.push(f);
  return () => list.splice(list.indexOf(f), 1);
};
const found = await dispatch({ method: "server/discover" });
const out = { capabilities: found.result?.capabilities, asked: [], states: [] };
const session = withTasks(
  {
    endpointId: "realtest",
    taskCapabilities: { generation: "v2", capabilities: out.capabilities?.extensions?.["io.modelcontextprotocol/tasks"] },
    dispatch,
    onServerRequest: () => () => {},
    onNotification: listen(listeners.notification),
    onInvalidated: listen(listeners.invalidated),
    get invalidated() {
      return invalidated;
    },
  },
  {
    onInputRequest: async (request) => {
      out.asked.push(request.params.message);
      const [name, field] = Object.entries(request.params.requestedSchema.properties)[0] ?? [];
      return { action: "accept", content: name === undefined ? {} : { [name]: field.oneOf[0].const } };
    },
    onError: (e) => console.error(e),
  },
);
const call = async () => {
  const execution = await session.callTool(tool, JSON.parse(text));
  out.kind = execution.kind;
  return execution;
};
const { outcome } = await (await call()).settle({
  onEvent: (event) => event.type === "task" && out.states.push([event.task.status, event.task.statusMessage]),
});
out.result = resultFromTaskOutcome(outcome);
const second = await call();
await second.cancel();
out.cancelled = (await session.task(second.handle.taskId).snapshot()).status;
out.none = await session.task("another's").snapshot().catch((e) => ({ code: e.code }));
await session.close();
server.stdin.end();
console.log(JSON.stringify(out));
