// Values of tools as they stand in the log: what is too large for it lies in the file store, and is shown by its beginning.
import { isPreview, type Preview, type ShownFile } from "./view";

type Fields = { [name: string]: unknown };
type Kept = { key?: string; preview?: string; bytes?: number };

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** With previews in place of what is kept elsewhere. The same value if nothing is. */
export function shown(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shown);
  if (!isFields(value)) return value;
  if (isFields(value.$file)) return preview(value.$file);
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, shown(each)]));
}

function preview({ key, preview, bytes }: Kept): Preview {
  const file_id = key ?? null;
  return { $preview: preview ?? "", bytes: bytes ?? 0, file_id, href: file_id === null ? "" : `/v1/files/${file_id}` };
}

/** The files in what a tool gave, and among what it told the model beside that. */
export function filesIn(...given: unknown[]): ShownFile[] {
  return given
    .flatMap((each) => (Array.isArray(each) ? each : [each]))
    .filter((each): each is Fields => isFields(each) && each.kind === "binary")
    .map(file);
}

function file(given: Fields): ShownFile {
  const data = shown(given.data);
  const kept = isPreview(data) ? data : null;
  return {
    id: kept?.file_id ?? null,
    name: typeof given.identifier === "string" ? given.identifier : null,
    media_type: typeof given.media_type === "string" ? given.media_type : "application/octet-stream",
    bytes: kept?.bytes ?? (typeof data === "string" ? Math.floor((data.length * 3) / 4) : 0),
  };
}

/** Arguments come as the model wrote them: a text that holds JSON. */
export function parsed(args: unknown): unknown {
  if (typeof args !== "string") return args;
  try {
    return JSON.parse(args);
  } catch {
    return args;
  }
}
