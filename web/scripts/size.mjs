// What a browser loads until the first chat is drawn, packed: printed, and refused if it is more than the budget.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const BUDGET_KB = 180;
const folder = new URL("../../src/outlast/api/console/", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL("manifest.json", folder), "utf8"));
const first = ["index.html", "src/chat/page.tsx"];

function filesOf(name, seen = new Set()) {
  const { file, css = [], imports = [] } = manifest[name];
  for (const each of [file, ...css]) seen.add(each);
  for (const each of imports) filesOf(each, seen);
  return seen;
}

const files = new Set(["index.html", ...first.flatMap((name) => [...filesOf(name)])]);
let sum = 0;
for (const file of files) {
  const size = gzipSync(readFileSync(new URL(file, folder))).length / 1000;
  sum += size;
  console.log(`${size.toFixed(1).padStart(7)} kB  ${file}`);
}
console.log(`${sum.toFixed(1).padStart(7)} kB  to the first paint, of ${BUDGET_KB}`);
if (sum > BUDGET_KB) process.exit(1);
