// What a page does with a chat, on the stock client of one version, against a real server:
// `node scenarios.mjs VERSION URL SCENARIO`. A scenario that is not as it should be ends with an error.

import assert from "node:assert/strict";
import { chatOf, partsOf, textOf } from "./chat.mjs";

const [version, url, scenario, given] = process.argv.slice(2);
const Chat = await chatOf(version);
const id = `${scenario}-${version}`;
const headers = { authorization: `Bearer owner-${version}` };
const page = (options = {}) => new Chat({ id, url, headers, ...options });

const post = (path) => fetch(`${url}${path}`, { method: "POST", headers });
const open = (gate) => post(`/gates/${gate}-${version}`);
const slow = { text: `slow ${id}` };
const says = (text, index = 0) => (chat) => textOf(chat.answers[index]) === text;
const roles = (chat) => chat.messages.map((message) => message.role);

/** A fetch that tells when so many answers have begun: what was sent is accepted then. */
function counting(count) {
  let begun;
  const accepted = new Promise((resolve) => (begun = resolve));
  const counted = async (...request) => {
    const response = await fetch(...request);
    if (--count === 0) begun();
    return response;
  };
  return { fetch: counted, accepted };
}

/** A fetch whose first answer breaks when `cut` is called, as a lost network breaks it. */
function breaking() {
  let cut;
  const broken = async (...request) => {
    const response = await fetch(...request);
    if (cut) return response;
    const body = response.body.pipeThrough(
      new TransformStream({ start: (controller) => (cut = () => controller.error(new TypeError("network error"))) }),
    );
    return new Response(body, response);
  };
  return { fetch: broken, cut: () => cut() };
}

/** Reconnects wait for the answer after the last one that the page has. */
const patient = (last) => ({
  prepareReconnectToStreamRequest: ({ api, id }) => ({ api: `${api}/${id}/stream?wait=20&after=${last()}` }),
});

/** What a page shows of a message; of a task only which one, because it goes on. */
const shown = ({ id, role, parts }) => ({
  id,
  role,
  parts: parts.map((part) =>
    part.type === "data-task"
      ? part.id
      : [part.type, part.text, part.state, part.toolCallId, part.input, part.output, part.errorText, part.data],
  ),
});

const scenarios = {
  async send() {
    const chat = page();
    await chat.sendMessage({ text: "hello" });
    assert.equal(chat.status, "ready");
    const [answer] = chat.answers;
    assert.match(answer.id, /^trn_/);
    assert.equal(textOf(answer), "Hello there.");
    assert.equal(partsOf(answer, "reasoning")[0].text, "Hm.");
    assert.equal(answer.metadata.state, "completed");
    assert.ok(answer.metadata.usage.output_tokens > 0);

    await chat.sendMessage({ text: "look" });
    const [call] = partsOf(chat.answers[1], "tool-glance");
    assert.deepEqual([call.state, call.input, call.output], ["output-available", { at: "sky" }, "It is blue."]);
    assert.equal(textOf(chat.answers[1]), "Seen.");
    assert.deepEqual(roles(chat), ["user", "assistant", "user", "assistant"]);
  },

  async stream() {
    const chat = page();
    const sending = chat.sendMessage(slow);
    await chat.until(says("One "));
    assert.equal(chat.status, "streaming");
    await open("stream");
    await sending;
    assert.equal(textOf(chat.answers[0]), "One two.");
  },

  async repeat() {
    const message = { id: "m1", role: "user", parts: [{ type: "text", text: `count ${id}` }] };
    const chats = [page(), page()];
    await Promise.all(chats.map((chat) => chat.sendMessage(message)));
    for (const chat of chats) assert.equal(textOf(chat.answers[0]), "Answer 1");
    assert.equal(chats[0].answers[0].id, chats[1].answers[0].id);

    const changed = page();
    await changed.sendMessage({ ...message, parts: [{ type: "text", text: "changed" }] });
    assert.match(changed.error.message, /idempotency_mismatch/);
  },

  async reload() {
    const chat = page();
    const sending = chat.sendMessage(slow);
    await chat.until(says("One "));
    const reloaded = page({ messages: chat.messages.slice(0, 1) });
    const resuming = reloaded.resumeStream();
    await reloaded.until(says("One "));
    await open("reload");
    await Promise.all([sending, resuming]);
    for (const each of [chat, reloaded]) {
      assert.equal(textOf(each.answers[0]), "One two.");
      assert.deepEqual(roles(each), ["user", "assistant"]);
      assert.equal(each.status, "ready");
    }
    await reloaded.resumeStream();
    assert.deepEqual([reloaded.status, reloaded.messages.length], ["ready", 2], "nothing runs any more");
    const stranger = new Chat({ id: "never-used", url, headers });
    await stranger.resumeStream();
    assert.deepEqual([stranger.status, stranger.messages], ["ready", []]);
  },

  async first() {
    const chat = page();
    const sending = chat.sendMessage(slow);
    await chat.until(says("One "));
    const opened = async () => (await (await fetch(`${url}/api/chat/${id}/messages`, { headers })).json()).items;
    const reloaded = [];
    for (const last of [(chat) => chat.answers.at(-1)?.id, () => "", () => null, () => "welcome", () => "start"]) {
      const each = page({ messages: await opened(), ...patient(() => last(each)) });
      reloaded.push([each, each.resumeStream()]);
      await each.until(says("One "));
    }
    await open("first");
    await sending;
    for (const [each, resuming] of reloaded) {
      await resuming;
      assert.deepEqual([each.status, each.error], ["ready", undefined]);
      assert.deepEqual(roles(each), ["user", "assistant"]);
      assert.equal(textOf(each.answers[0]), "One two.");
    }
    const late = page({ messages: chat.messages.slice(0, 1), ...patient(() => "start") });
    await late.resumeStream();
    assert.equal(textOf(late.answers[0]), "One two.", "it ended between the messages and the reconnect");
  },

  async leave() {
    const chat = page();
    const sending = chat.sendMessage(slow);
    await chat.until(says("One "));
    await chat.stop();
    await sending;
    const resuming = chat.resumeStream();
    await chat.until((chat) => chat.status === "streaming");
    await open("leave");
    await resuming;
    assert.equal(textOf(chat.answers[0]), "One two.", "closing a connection stops nothing");
    assert.deepEqual(roles(chat), ["user", "assistant"]);
  },

  async cut() {
    const { fetch, cut } = breaking();
    const chat = page({ fetch });
    const sending = chat.sendMessage(slow);
    await chat.until(says("One "));
    cut();
    await sending;
    assert.equal(chat.status, "error");
    // Version 5 adds a replay to what it had before the cut: it needs a new chat, without the unfinished answer.
    const resumed = version === "5" ? page({ messages: chat.messages.slice(0, 1) }) : chat;
    const resuming = resumed.resumeStream();
    await resumed.until((chat) => chat.status === "streaming");
    await open("cut");
    await resuming;
    assert.equal(textOf(resumed.answers[0]), "One two.");
    assert.deepEqual(roles(resumed), ["user", "assistant"]);
  },

  async recovered() {
    const chat = page();
    const resuming = chat.resumeStream();
    await chat.until(says("One "));
    await open("recovered");
    await resuming;
    assert.equal(textOf(chat.answers[0]), "One two.", "what died with the process is not there twice");
  },

  async stop() {
    const chat = page();
    const sending = chat.sendMessage(slow);
    await chat.until(says("One "));
    const stopped = await (await post(`/api/chat/${id}/stop`)).json();
    assert.equal(stopped.state, "stopped");
    await sending;
    assert.equal(chat.status, "ready");
    assert.equal(textOf(chat.answers[0]), "One ");
    assert.equal(chat.answers[0].metadata.state, "stopped");
    await chat.sendMessage({ text: "hello" });
    assert.equal(textOf(chat.answers[1]), "Hello there.");
  },

  async steer() {
    const { fetch, accepted } = counting(2);
    const chat = page({ fetch });
    const sending = chat.sendMessage(slow);
    await chat.until(says("One "));
    const steering = chat.sendMessage({ text: "hello" });
    await accepted;
    await open("steer");
    await Promise.all([sending, steering]);
    assert.deepEqual(roles(chat), ["user", "assistant", "user"], "the answer that ran goes on with it");
    assert.equal(textOf(chat.answers[0]), "One two.|Hello there.");
    const heard = partsOf(chat.answers[0], "data-message");
    assert.deepEqual(heard.map((part) => part.data.text), ["hello"]);
    assert.equal(heard[0].data.key, chat.lastMessage.id, "a page can show it there instead of below");
    assert.equal(chat.status, "ready");
  },

  async queue() {
    const { fetch, accepted } = counting(2);
    const chat = page({ fetch });
    const sending = chat.sendMessage(slow);
    await chat.until(says("One "));
    const queueing = chat.sendMessage({ text: "hello" }, { body: { when_busy: "queue" } });
    await accepted;
    await open("queue");
    await Promise.all([sending, queueing]);
    assert.deepEqual(roles(chat), ["user", "assistant", "user", "assistant"]);
    assert.deepEqual(chat.answers.map(textOf), ["One two.", "Hello there."]);
  },

  async interrupt() {
    const chat = page();
    const sending = chat.sendMessage(slow);
    await chat.until(says("One "));
    const interrupting = chat.sendMessage({ text: "hello" }, { body: { when_busy: "interrupt" } });
    await Promise.all([sending, interrupting]);
    assert.deepEqual(roles(chat), ["user", "assistant", "user", "assistant"]);
    assert.deepEqual(chat.answers.map(textOf), ["One ", "Hello there."]);
    assert.deepEqual(chat.answers.map((answer) => answer.metadata.state), ["stopped", "completed"]);
  },

  async held() {
    const { fetch, accepted } = counting(2);
    const chat = page({ fetch });
    const sending = chat.sendMessage(slow);
    await chat.until(says("One "));
    const waiting = chat.sendMessage({ text: "hello" });
    await accepted;
    await post(`/api/chat/${id}/stop`);
    await Promise.all([sending, waiting]);
    assert.equal(chat.status, "ready");
    assert.deepEqual(roles(chat), ["user", "assistant", "user"], "the message is kept, and nobody waits for it");
  },

  async parked() {
    const chat = page(patient(() => chat.answers.at(-1).id));
    await chat.sendMessage({ text: `survey ${id}` });
    const before = structuredClone(chat.answers[0]);
    const [call] = partsOf(before, "tool-survey");
    assert.deepEqual([call.state, call.output.type], ["output-available", "background"]);
    const [task] = partsOf(before, "data-task");
    assert.deepEqual([task.id, task.data.state], [call.output.task_id, "running"]);
    assert.equal(textOf(before), "It goes on.");

    const waking = chat.resumeStream();
    await open("parked");
    await waking;
    assert.equal(chat.answers.length, 2, "a wake is a new message");
    assert.equal(textOf(chat.answers[1]), "The survey is done.");
    assert.equal(partsOf(chat.answers[1], "data-wake")[0].data.task_id, task.id);
    const [ended] = partsOf(chat.answers[1], "data-task");
    assert.deepEqual([ended.id, ended.data.state], [task.id, "succeeded"]);
    assert.deepEqual(chat.answers[0], before, "a call has one output");
  },

  async news() {
    const chat = page();
    await chat.sendMessage({ text: `survey task-${id}` });
    const sending = chat.sendMessage(slow);
    await chat.until(says("One ", 1));
    await open("task-news");
    const news = (chat) => partsOf(chat.answers[1], "data-task");
    await chat.until((chat) => news(chat).some((part) => part.data.state === "succeeded"));
    await open("news");
    await sending;
    assert.equal(news(chat).length, 1, "news of a task are one part, updated in place");
    assert.equal(textOf(chat.answers[1]), "One two.|The survey is done.");
    assert.deepEqual(roles(chat), ["user", "assistant", "user", "assistant"]);
  },

  async opened() {
    const { fetch: counted, accepted } = counting(4);
    const chat = page({ ...patient(() => chat.answers.at(-1).id), fetch: counted });
    await chat.sendMessage({ text: `survey ${id}` });
    const waking = chat.resumeStream();
    await open("opened");
    await waking;
    const sending = chat.sendMessage({ text: `slow last-${id}` });
    await chat.until(says("One ", 2));
    const steering = chat.sendMessage({ text: "hello" });
    await accepted;

    const opened = async () => (await (await fetch(`${url}/api/chat/${id}/messages`, { headers })).json()).items;
    const running = await opened();
    assert.deepEqual(running.map(shown), chat.messages.slice(0, 4).map(shown));
    assert.equal(partsOf(running[1], "data-task")[0].data.state, "succeeded", "tasks are shown as they are now");
    const reopened = page({ messages: running });
    const resuming = reopened.resumeStream();
    await reopened.until(says("One ", 2));
    await open("last-opened");
    await Promise.all([sending, steering, resuming]);
    assert.deepEqual((await opened()).map(shown), chat.messages.map(shown));
    assert.deepEqual(reopened.messages.map(shown), chat.messages.slice(0, 5).map(shown));
    assert.deepEqual(roles(chat), ["user", "assistant", "assistant", "user", "assistant", "user"]);
  },

  async regenerate() {
    const chat = page(patient(() => chat.answers.at(-1).id));
    await chat.sendMessage({ text: `count ${id}` });
    assert.equal(textOf(chat.answers[0]), "Answer 1");
    const first = chat.answers[0].id;
    for (const answer of ["Answer 2", "Answer 3"]) {
      await chat.regenerate();
      assert.equal(chat.status, "ready", chat.error?.message);
      assert.deepEqual(roles(chat), ["user", "assistant"]);
      assert.equal(textOf(chat.answers[0]), answer);
      assert.notEqual(chat.answers[0].id, first);
    }

    await chat.sendMessage({ text: `survey ${id}` });
    const waking = chat.resumeStream();
    await open("regenerate");
    await waking;
    await chat.regenerate();
    assert.equal(chat.status, "ready", chat.error?.message);
    // Version 5 begins an answer that follows another one with a copy of that one, until the page is opened anew.
    const made = version === "5" ? "It goes on.|The survey is done." : "The survey is done.";
    assert.deepEqual(chat.answers.map(textOf), ["Answer 3", "It goes on.", made]);
    assert.equal(chat.answers[2].metadata.origin, "regenerate", "what a task's end was answered with");
  },

  async approved() {
    const chat = page();
    await chat.sendMessage({ text: `pay ${id}` });
    assert.equal(chat.status, "ready", chat.error?.message);
    const asking = (chat) => partsOf(chat.answers[0], "tool-pay")[0];
    assert.equal(asking(chat).state, "approval-requested");
    assert.equal(asking(chat).output, undefined, "no output until it is decided");

    const reloaded = page({ messages: (await (await fetch(`${url}/api/chat/${id}/messages`, { headers })).json()).items });
    assert.deepEqual(asking(reloaded).approval, asking(chat).approval);
    await reloaded.addToolApprovalResponse({ id: asking(reloaded).approval.id, approved: true });
    await reloaded.sendMessage();
    assert.equal(reloaded.status, "ready", reloaded.error?.message);
    assert.deepEqual([asking(reloaded).state, asking(reloaded).output], ["output-available", `paid ${id}`]);
    assert.equal(textOf(reloaded.answers[0]), "It goes on.|The survey is done.");

    const late = page({ messages: chat.messages });
    await late.addToolApprovalResponse({ id: asking(late).approval.id, approved: false, reason: "no" });
    await late.sendMessage();
    assert.match(late.error.message, /already approved by/, "the first decision wins");
    const opened = (await (await fetch(`${url}/api/chat/${id}/messages`, { headers })).json()).items;
    assert.equal(opened[1].parts.find((part) => part.type === "tool-pay").state, "output-available");
  },

  async refused() {
    const chat = page();
    await chat.sendMessage({ text: `pay ${id}` });
    const asking = () => partsOf(chat.answers[0], "tool-pay")[0];
    await chat.addToolApprovalResponse({ id: asking().approval.id, approved: false, reason: "too much" });
    await chat.sendMessage();
    assert.equal(chat.status, "ready", chat.error?.message);
    assert.equal(asking().state, "output-denied");
    assert.equal(textOf(chat.answers[0]), "It goes on.|Then not.");
  },

  async unasked() {
    const chat = page({ body: { approvals: false } });
    await chat.sendMessage({ text: `pay ${id}` });
    assert.equal(chat.status, "ready", chat.error?.message);
    const [call] = partsOf(chat.answers[0], "tool-pay");
    assert.deepEqual([call.state, call.output.awaiting], ["output-available", "approval"]);
  },

  async picture() {
    const chat = page();
    const image = { type: "file", mediaType: "image/png", filename: "rhine.png", url: `data:image/png;base64,${given}` };
    await chat.sendMessage({ text: "What is this?", files: [image] });
    assert.equal(chat.status, "ready", chat.error?.message);
    assert.equal(textOf(chat.answers[0]), "A river.");
  },

  async fail() {
    const chat = page();
    await chat.sendMessage({ text: "fail" });
    assert.equal(chat.status, "error");
    assert.equal(chat.answers[0].metadata.state, "failed");
    assert.equal(chat.error.message, chat.answers[0].metadata.error.message);
    await chat.sendMessage({ text: " " });
    assert.match(chat.error.message, /"code":"invalid_input"/);
  },
};

await scenarios[scenario]();
