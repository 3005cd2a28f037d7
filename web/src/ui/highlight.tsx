import bash from "highlight.js/lib/languages/bash";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";
import { createElement, type ReactNode } from "react";

const known = createLowlight({ bash, css, diff, go, javascript, json, python, rust, sql, typescript, xml, yaml });

type Node = { type: string; value?: string; properties?: { className?: string[] }; children?: Node[] };

function draw(node: Node, key: number): ReactNode {
  if (node.type === "text") return node.value;
  const className = (node.properties?.className ?? []).join(" ");
  return createElement("span", { key, className }, (node.children ?? []).map(draw));
}

/** Elements with classes; the text alone for a language that is not known. */
export function highlight(code: string, language: string): ReactNode {
  if (!known.registered(language)) return code;
  return (known.highlight(language, code) as { children: Node[] }).children.map(draw);
}
