import { describe, expect, it } from "vitest";
import { fits, found } from "../src/palette/commands";

const commands = ["Usage", "New chat", "Needs you", "Tasks"].map((label) => ({
  id: label,
  label,
  run: () => undefined,
}));

describe("the palette", () => {
  it("offers everything while nothing is written", () => expect(found(commands, "")).toHaveLength(4));
  it("puts what begins with the letters first", () => {
    expect(found(commands, "us").map((each) => each.label)).toEqual(["Usage"]);
    expect(found(commands, "ne").map((each) => each.label)).toEqual(["New chat", "Needs you"]);
    expect(found(commands, "chat").map((each) => each.label)).toEqual(["New chat"]);
  });
  it("takes letters with others between them, in order", () => {
    expect([fits("New chat", "nct"), fits("New chat", "tcn")]).toEqual([0, null]);
  });
});
