// Plays server-sent events to a stock client: `node play.mjs VERSION < frames` prints what its page then shows.

import { text } from "node:stream/consumers";
import { chatOf } from "./chat.mjs";

const Chat = await chatOf(process.argv[2]);
const frames = await text(process.stdin);
const headers = { "content-type": "text/event-stream", "x-vercel-ai-ui-message-stream": "v1" };
const chat = new Chat({ id: "played", fetch: async () => new Response(frames, { headers }) });
await chat.sendMessage({ text: "Go." });
console.log(JSON.stringify({ status: chat.status, error: chat.error?.message ?? null, messages: chat.messages }));
