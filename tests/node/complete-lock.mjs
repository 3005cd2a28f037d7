// `node complete-lock.mjs FOLDER`: adds to the lock what npm left out because the registry did not have it.
//
// A package names its builds for all platforms as optional dependencies. `npm install` locks those it can fetch, and
// `npm ci` then refuses a lock in which one is missing. An entry with a version and a platform is enough for it.

import { readFileSync, writeFileSync } from "node:fs";

const file = `${process.argv[2]}/package-lock.json`;
const lock = JSON.parse(readFileSync(file, "utf8"));
const SYSTEMS = ["aix", "android", "darwin", "freebsd", "linux", "netbsd", "openbsd", "openharmony", "sunos", "win32"];
const PROCESSORS = ["arm", "arm64", "ia32", "loong64", "mips64el", "ppc64", "riscv64", "s390x", "wasm32", "x64"];

const among = (words, known) => words.filter((word) => known.includes(word)).slice(0, 1);

function entry(name, range, isDev) {
  const words = name.split(/[/-]/);
  const [cpu, os] = [among(words, PROCESSORS), among(words, SYSTEMS)];
  if (cpu.length + os.length === 0) throw new Error(`${name} is missing and names no platform: install it first`);
  return {
    version: range.replace(/^[~^=]/, ""),
    ...(cpu.length && { cpu }),
    ...(isDev && { dev: true }),
    optional: true,
    ...(os.length && { os }),
  };
}

for (const each of Object.values(lock.packages))
  for (const [name, range] of Object.entries(each.optionalDependencies ?? {}))
    lock.packages[`node_modules/${name}`] ??= entry(name, range, each.dev);

const [root, ...rest] = Object.entries(lock.packages);
lock.packages = Object.fromEntries([root, ...rest.sort(([a], [b]) => (a < b ? -1 : 1))]);
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
