// A chat as a page has it, on the stock client of one version: `await chatOf(5)` gives its class.

const PATIENCE = 20_000;

class State {
  messages = [];
  error = undefined;
  listeners = new Set();
  #status = "ready";

  get status() {
    return this.#status;
  }

  set status(status) {
    this.#status = status;
    this.#tell();
  }

  pushMessage = (message) => this.#set([...this.messages, this.snapshot(message)]);
  popMessage = () => this.#set(this.messages.slice(0, -1));
  replaceMessage = (index, message) => this.#set(this.messages.with(index, this.snapshot(message)));
  snapshot = (value) => structuredClone(value);

  #set(messages) {
    this.messages = messages;
    this.#tell();
  }

  #tell() {
    for (const listener of this.listeners) listener();
  }
}

export async function chatOf(version) {
  const { AbstractChat, DefaultChatTransport } = await import(`ai${version}`);

  return class Chat extends AbstractChat {
    constructor({ id, url = "http://page.test", messages = [], ...transport }) {
      const state = new State();
      state.messages = messages;
      super({ id, state, transport: new DefaultChatTransport({ api: `${url}/api/chat`, ...transport }) });
    }

    get answers() {
      return this.messages.filter((message) => message.role === "assistant");
    }

    /** Resolves as soon as `holds(this)`: looked at after every change. */
    until(holds, what = holds.toString()) {
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          this.state.listeners.delete(look);
          reject(new Error(`never came true: ${what}\n${this.status} ${JSON.stringify(this.messages, null, 1)}`));
        }, PATIENCE);
        const look = () => {
          if (!holds(this)) return;
          clearTimeout(timer);
          this.state.listeners.delete(look);
          resolve();
        };
        this.state.listeners.add(look);
        look();
      });
    }
  };
}

export const textOf = (message) =>
  (message?.parts ?? [])
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("|");

export const partsOf = (message, type) => message.parts.filter((part) => part.type === type);
