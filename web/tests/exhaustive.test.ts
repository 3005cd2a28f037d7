// A type of event that the reducer has no case for is not passed over in silence: the page does not compile.
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { describe, expect, it } from "vitest";

const FOLDER = fileURLToPath(new URL("../", import.meta.url));
const REDUCER = `${FOLDER}src/log/reduce.ts`;

/** What the compiler says of the reducer with another text in it. */
function complaints(change: (text: string) => string): string[] {
  const { config } = ts.readConfigFile(`${FOLDER}tsconfig.json`, ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, FOLDER);
  const host = ts.createCompilerHost({ ...options, noEmit: true });
  const read = host.readFile;
  host.readFile = (name) => (name === REDUCER ? change(read(name) ?? "") : read(name));
  const program = ts.createProgram([REDUCER], { ...options, noEmit: true }, host);
  const found = program.getSemanticDiagnostics(program.getSourceFile(REDUCER));
  return found.map((each) => ts.flattenDiagnosticMessageText(each.messageText, " "));
}

describe("the reducer", () => {
  it("compiles as it is", () => expect(complaints((text) => text)).toEqual([]), 60_000);
  it.each(["call.settled", "task.output"])(
    "does not without %s",
    (type) => {
      const said = complaints((text) => {
        const without = text.replace(new RegExp(`    case "${type}":\\n(      return .*\\n)?`), "");
        expect(without).not.toBe(text);
        return without;
      });
      expect(said.join()).toMatch(/not assignable to parameter of type 'never'/);
    },
    60_000,
  );
});
