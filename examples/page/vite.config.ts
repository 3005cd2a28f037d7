import { readdirSync, readFileSync } from "node:fs";
import react from "@vitejs/plugin-react";
import { defineConfig, type ProxyOptions } from "vite";

/** Where the server is, and a key for it: as it was said, or as `outlast serve` has left it in this folder. */
function server(): { url: string; token?: string } {
  const { OUTLAST_URL: url, OUTLAST_TOKEN: token } = process.env;
  if (url) return { url, token };
  const left = readdirSync(import.meta.dirname).find((name) => name.endsWith(".server.json"));
  if (!left) throw new Error("No server is known: run `outlast serve app.py` here, or set OUTLAST_URL and OUTLAST_TOKEN.");
  return JSON.parse(readFileSync(`${import.meta.dirname}/${left}`, "utf8"));
}

/** The key is added here, so that no browser ever has it. */
function proxied(): Record<string, ProxyOptions> {
  const { url, token } = server();
  const options: ProxyOptions = {
    target: url,
    headers: token ? { authorization: `Bearer ${token}` } : undefined,
    // A stream whose server has died must break in the browser too, or the page would wait for ever.
    configure: (proxy) =>
      proxy.on("proxyRes", (answer, _, passed) => answer.on("close", () => answer.complete || passed.destroy())),
  };
  return { "/api": options, "/v1": options };
}

export default defineConfig(({ command, isPreview }) => ({
  plugins: [react()],
  server: { proxy: command === "serve" || isPreview ? proxied() : undefined },
}));
