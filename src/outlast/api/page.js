// A page to try the server with: sign in with the link's token, say something, watch it being answered.
// The address names the conversation, so that a reload, or another tab, shows it whole and goes on.
"use strict";

const at = (id) => document.getElementById(id);
const parts = new Map();
const calls = new Map();
const ENDS = {
  failed: "failed",
  retried: "failed, the model may try again",
  interrupted: "interrupted",
  parked: "goes on in the background",
};
let session = null;
let state = "";

async function api(path, options = {}) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(`v1/${path}`, { headers, ...options });
  if (response.status === 204) return null;
  const body = await response.json();
  if (!response.ok) throw Object.assign(new Error(body.detail), body);
  return body;
}

async function signIn() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (given.has("token")) {
    history.replaceState(null, "", location.pathname);
    const token = given.get("token");
    await api("login", { method: "POST", body: JSON.stringify({ token }) }).catch(() => null);
  }
  const agents = await api("agents");
  tell(`Ready: ${agents.items.map((each) => each.name).join(", ")}.`);
  at("form").hidden = at("answer").hidden = false;
  if (given.has("session")) follow(given.get("session"));
}

function follow(id) {
  session = id;
  history.replaceState(null, "", `#session=${encodeURIComponent(id)}`);
  const events = new EventSource(`v1/sessions/${encodeURIComponent(id)}/events`);
  events.onmessage = (message) => show(JSON.parse(message.data));
  events.onopen = () => tell(state);
  events.onerror = () => {
    if (events.readyState === EventSource.CLOSED) {
      session = null;
      history.replaceState(null, "", location.pathname);
      tell("This conversation is not there. What you send begins a new one.");
    } else {
      at("state").textContent = "The server does not answer; trying again …";
    }
  };
}

function show({ type, data, turn_id }) {
  if (type === "input.delivered") at("answer").append(`\n${data.kind === "message" ? "»" : "·"} ${data.text}\n`);
  if (type === "part.started") {
    const part = Object.assign(document.createElement("span"), { className: data.kind });
    if (data.kind === "call") {
      part.append(`\n[${data.tool}]\n`);
      calls.set(`${turn_id} ${data.call_id}`, part);
    }
    parts.set(`${turn_id} ${data.part}`, at("answer").appendChild(part));
  }
  if (type === "part.delta") {
    const part = parts.get(`${turn_id} ${data.part}`);
    if (part?.className === "text") part.append(data.text);
  }
  if (type === "call.ended") showCallEnd(data, turn_id);
  if (type === "turn.completed") showEnd(data, turn_id);
  for (const each of data.dropped ?? []) parts.get(`${turn_id} ${each}`)?.remove();
  if (type.startsWith("turn.")) tell(`The turn is ${type.slice(5)}${data.message ? `: ${data.message}` : "."}`);
  if (type.startsWith("task.")) showTask(data.task);
}

// A call of a turn that was resumed may have been asked for before: then nothing stands there yet.
function showCallEnd({ call_id, tool, outcome, part }, turn_id) {
  const call = calls.get(`${turn_id} ${call_id}`) ?? at("answer").appendChild(document.createElement("span"));
  const end = ENDS[outcome] ? ` ${ENDS[outcome]}` : "";
  const content = words(part.content);
  const why = end && typeof content === "string" ? `: ${content}` : "";
  call.textContent = `\n[${tool}]${end}${why}\n`;
}

// What the model has not said itself: a closing line, or an output of the agent's type.
function showEnd({ text, output }, turn_id) {
  if (!text && (output === null || output === undefined)) return;
  const own = [...parts].filter(([name, part]) => name.startsWith(`${turn_id} `) && part.className === "text");
  const said = own.flatMap(([, part]) => [part.textContent.trim(), plain(part.textContent)]);
  const begins = text ? undefined : output.$file?.preview?.trim();
  const shown = words(output);
  const told = text || (typeof shown === "string" ? shown : JSON.stringify(shown));
  const isSaid = (each) => (begins ? each.startsWith(begins) : each === plain(told));
  if (!said.some(isSaid)) at("answer").append(`\n${told}\n`);
}

// A stored value: of what is too large for the log, the beginning and the size.
function words(value) {
  if (Array.isArray(value)) return value.map(words);
  if (value === null || typeof value !== "object") return value;
  const { bytes, preview } = value.$file ?? {};
  if (value.$file) return `${preview ? `${preview}… ` : ""}(${(bytes ?? 0).toLocaleString("en")} bytes)`;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, words(each)]));
}

function plain(text) {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return text.trim();
  }
}

function showTask(task) {
  const item = at(task.id) ?? at("tasks").appendChild(Object.assign(document.createElement("li"), { id: task.id }));
  item.textContent = `${task.title}: ${stateOf(task)} (${task.id})`;
}

function stateOf({ state, settled, progress, error }) {
  if (settled) return `settled: ${settled.verdict}`;
  if (state === "running" && progress?.total) return `running ${percent(progress)} %`;
  return state === "failed" && error?.message ? `failed: ${error.message}` : state;
}

// A tool may count past its end, or backwards.
function percent({ current, total }) {
  return Math.round(100 * Math.min(1, Math.max(0, current / total)));
}

async function send(event) {
  event.preventDefault();
  const text = at("text").value;
  if (session === null) {
    at("answer").replaceChildren();
    at("tasks").replaceChildren();
    follow((await api("sessions", { method: "POST", body: "{}" })).id);
  }
  await api(`sessions/${session}/messages`, { method: "POST", body: JSON.stringify({ text }) });
  at("text").value = "";
}

function tell(words) {
  at("state").textContent = state = words;
}

function say(error) {
  if (error.status === 401) tell("You are not signed in. A link works once: “outlast open” prints a new one.");
  else if (error instanceof TypeError) tell("The server does not answer. What you wrote is still there: send it again.");
  else tell(error.message);
}

at("form").addEventListener("submit", (event) => send(event).catch(say));
at("text").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  at("form").requestSubmit();
});
at("stop").addEventListener("click", () => session && api(`sessions/${session}/stop`, { method: "POST", body: "{}" }).catch(say));
signIn().catch(say);
