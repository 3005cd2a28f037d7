// A browser for the tests: `node browser.mjs EXECUTABLE` prints the port on which it takes commands, and lives as long
// as its stdin is open. Each connection has its own context (cookies, storage), closed with it. A command is a line of
// JSON, `{id, tab, method, args, selector?}`: a method of Playwright's page, or of the first element that fits. Its
// answer is `{id, result}` or `{id, error}`. A tab is opened when it is first named.

import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const PATIENCE = 45_000;

const browser = await chromium.launch({ executablePath: process.argv[2], args: ARGUMENTS });

/** What no test wants to see: errors in the console, exceptions, requests that were refused or failed. */
function watch(page, problems) {
  page.on("console", (message) => message.type() === "error" && problems.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => problems.push(`exception: ${error.message}`));
}

const TRACED = ["toplevel", "__metadata", "disabled-by-default-devtools.timeline"];

/** What the page's own thread does for a while: each task's milliseconds by the clock and of the processor, in turn. */
async function tasksOf(page, milliseconds) {
  const events = [];
  const session = await page.context().newCDPSession(page);
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  await session.send("Tracing.start", { traceConfig: { includedCategories: TRACED } });
  await page.waitForTimeout(milliseconds);
  const ended = new Promise((done) => session.once("Tracing.tracingComplete", done));
  await session.send("Tracing.end");
  await ended;
  await session.detach();
  const place = ({ pid, tid }) => `${pid} ${tid}`;
  const ofPages = new Set(events.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain").map(place));
  const tasks = events.filter((each) => each.name === "RunTask" && each.ph === "X" && ofPages.has(place(each)));
  return tasks.flatMap(({ dur, tdur }) => [dur / 1e3, (tdur ?? 0) / 1e3]);
}

async function serve(socket) {
  const context = await browser.newContext();
  context.setDefaultTimeout(PATIENCE);
  const tabs = new Map();
  const problems = [];

  async function opened(name) {
    if (!tabs.has(name))
      tabs.set(name, context.newPage().then((page) => (watch(page, problems), page)));
    return tabs.get(name);
  }

  async function run({ tab, method, args, selector }) {
    if (method === "problems") return problems.splice(0);
    const page = await opened(tab);
    if (method === "tasksOf") return tasksOf(page, ...args);
    const result = await (selector === undefined ? page : page.locator(selector).first())[method](...args);
    // A response, a handle or an image is of no use on the other side.
    return ["string", "number", "boolean"].includes(typeof result) || Array.isArray(result) ? result : null;
  }

  socket.on("error", () => {});
  socket.on("close", () => context.close().catch(() => {}));
  createInterface({ input: socket }).on("line", async (line) => {
    const command = JSON.parse(line);
    const answer = await run(command).then((result) => ({ result }), (error) => ({ error: error.message }));
    if (!socket.destroyed) socket.write(`${JSON.stringify({ id: command.id, ...answer })}\n`);
  });
}

const server = createServer((socket) => void serve(socket));
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume().on("end", async () => {
  await browser.close();
  process.exit(0);
});
