// A page to try the server with: sign in with the link's token, say something, watch it being answered.
"use strict";

const at = (id) => document.getElementById(id);
let session = null;

async function api(path, options = {}) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(`v1/${path}`, { headers, ...options });
  if (response.status === 204) return null;
  const body = await response.json();
  if (!response.ok) throw Object.assign(new Error(body.detail), body);
  return body;
}

async function signIn() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    history.replaceState(null, "", location.pathname);
    await api("login", { method: "POST", body: JSON.stringify({ token }) }).catch(() => null);
  }
  const agents = await api("agents");
  at("state").textContent = `Ready: ${agents.items.map((each) => each.name).join(", ")}.`;
  at("form").hidden = at("answer").hidden = false;
}

function show(event) {
  const { type, data } = event;
  if (type === "input.delivered") at("answer").append(`\n» ${data.text}\n`);
  if (type === "part.started" && data.kind === "call") at("answer").append(`\n[${data.tool}]\n`);
  if (type === "part.delta") show.kinds.get(data.part) === "text" && at("answer").append(data.text);
  if (type === "part.started") show.kinds.set(data.part, data.kind);
  if (type.startsWith("turn.")) at("state").textContent = type.replace("turn.", "The turn is ");
  if (type.startsWith("task.")) showTask(data.task);
}
show.kinds = new Map();

function showTask(task) {
  const item = at(task.id) ?? at("tasks").appendChild(Object.assign(document.createElement("li"), { id: task.id }));
  const part = task.progress?.total ? ` ${Math.round((100 * task.progress.current) / task.progress.total)} %` : "";
  item.textContent = `${task.title}: ${task.state}${part}`;
}

async function send(event) {
  event.preventDefault();
  if (session === null) {
    session = await api("sessions", { method: "POST", body: "{}" });
    const events = new EventSource(`v1/sessions/${session.id}/events`);
    events.onmessage = (message) => show(JSON.parse(message.data));
  }
  await api(`sessions/${session.id}/messages`, { method: "POST", body: JSON.stringify({ text: at("text").value }) });
  at("text").value = "";
}

const say = (error) => (at("state").textContent = error.message);
at("form").addEventListener("submit", (event) => send(event).catch(say));
at("stop").addEventListener("click", () => session && api(`sessions/${session.id}/stop`, { method: "POST", body: "{}" }).catch(say));
signIn().catch(say);
