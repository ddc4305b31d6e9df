// A server on the official TypeScript SDK with the tools that the conformance suite calls for tasks, as tasks of 2025-11-25.
//   node taskserver.mjs NODE_MODULES
import { pathToFileURL } from "node:url";

const npm = process.argv[2];
const sdk = (path) => import(pathToFileURL(`${npm}/@modelcontextprotocol/sdk/dist/esm/${path}`));
const { McpServer } = await sdk("server/mcp.js");
const { StdioServerTransport } = await sdk("server/stdio.js");
const { InMemoryTaskStore, InMemoryTaskMessageQueue } = await sdk("experimental/tasks/index.js");
const { ElicitResultSchema, ErrorCode, McpError } = await sdk("types.js");
const { z } = await import(pathToFileURL(`${npm}/zod/index.js`));

// A task may lead to an error, which the SDK's store has no place for.
const errors = new Map();
class Store extends InMemoryTaskStore {
  async getTaskResult(id, session) {
    if (errors.has(id)) throw errors.get(id);
    return super.getTaskResult(id, session);
  }
}
const server = new McpServer(
  { name: "taskserver", version: "1" },
  {
    capabilities: { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } },
    taskStore: new Store(),
    taskMessageQueue: new InMemoryTaskMessageQueue(),
  },
);
const text = (s, isError) => ({ content: [{ type: "text", text: s }], ...(isError && { isError }) });
const after = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000).unref());
const ask = (extra, name, related) =>
  extra.sendRequest(
    { method: "elicitation/create", params: { message: `${name}?`, requestedSchema: { type: "object", properties: { [name]: { type: "string" } } } } },
    ElicitResultSchema,
    related && { relatedTask: { taskId: related } },
  );
const needs = async (extra, id, ...names) => {
  await extra.taskStore.updateTaskStatus(id, "input_required", "asking");
  const answers = await Promise.all(names.map((name) => ask(extra, name, id)));
  await extra.taskStore.updateTaskStatus(id, "working", "answered");
  return text(JSON.stringify(answers.map((a) => a.action)));
};

// run is a tool that is a task only. before may ask before there is one; work gives what it leads to.
const run = (name, inputSchema, work, before = async () => undefined) =>
  server.experimental.tasks.registerToolTask(name, { inputSchema, execution: { taskSupport: "required" } }, {
    createTask: async (args, extra) => {
      const said = await before(extra);
      const task = await extra.taskStore.createTask({ ttl: 300_000, pollInterval: 100 });
      work(args, extra, task.taskId, said)
        .then((result) => extra.taskStore.storeTaskResult(task.taskId, result.isError ? "failed" : "completed", result))
        .catch((e) => {
          if (!(e instanceof McpError)) return; // it was cancelled
          errors.set(task.taskId, e);
          return extra.taskStore.updateTaskStatus(task.taskId, "failed", "broken");
        })
        .catch(() => {});
      return { task };
    },
    getTask: (_, extra) => extra.taskStore.getTask(extra.taskId),
    getTaskResult: (_, extra) => extra.taskStore.getTaskResult(extra.taskId),
  });

server.registerTool("greet", { inputSchema: { name: z.string() } }, async ({ name }) => text(`Hello, ${name}!`));
run("slow_compute", { seconds: z.number(), label: z.string().optional() }, async ({ seconds }) => {
  await after(seconds);
  return text("computed");
});
run("failing_job", {}, async () => {
  await after(1);
  return text("it went wrong", true);
});
run("protocol_error_job", {}, async () => {
  await after(0.1);
  throw new McpError(ErrorCode.InternalError, "broken");
});
run("confirm_delete", { filename: z.string() }, (_, extra, id) => needs(extra, id, "confirm"));
run("multi_input", {}, (_, extra, id) => needs(extra, id, "one", "two"));
run("test_tool_with_task", {}, async (_args, _extra, _id, said) => text(`for ${said.content?.name}`), (extra) => ask(extra, "name"));
await server.connect(new StdioServerTransport());
