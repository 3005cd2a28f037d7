// `node build-page.mjs VERSION FOLDER`: builds the example page, with the stock client of another version in place of
// the one that it comes with (7).

import { fileURLToPath } from "node:url";

const [version, folder] = process.argv.slice(2);
const root = new URL("../../examples/page/", import.meta.url);
const { build } = await import(new URL("node_modules/vite/dist/node/index.js", root));
const stock = (name) => fileURLToPath(new URL(`node_modules/${name}`, import.meta.url));

await build({
  root: fileURLToPath(root),
  base: "./",
  logLevel: "warn",
  build: { outDir: folder, emptyOutDir: true },
  resolve: {
    alias: version === "7" ? {} : { "@ai-sdk/react": stock(`react${version}`), ai: stock(`ai${version}`) },
    dedupe: ["react", "react-dom"],
  },
});
