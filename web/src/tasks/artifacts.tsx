// Files that a task has made: pictures are shown, everything can be saved.
import type { Task } from "../api/types";
import { Shown } from "../chat/blocks/file";
import { Card } from "../ui/frame";

type File = { id?: string | null; name?: string | null; media_type: string; bytes: number };

export function Artifacts({ task }: { task: Task }) {
  const { length } = task.artifacts;
  if (length === 0) return null;
  return (
    <Card title={length === 1 ? "A file that it made" : `${length} files that it made`}>
      <Made artifacts={task.artifacts} />
    </Card>
  );
}

export function Made({ artifacts }: { artifacts: readonly Record<string, unknown>[] }) {
  if (artifacts.length === 0) return null;
  return (
    <div className="flex flex-wrap gap-3">
      {artifacts.map(fileOf).map((each, index) => (
        <Shown key={each.id ?? index} file={each} />
      ))}
    </div>
  );
}

function fileOf(artifact: Record<string, unknown>): File {
  const { id, file_id, name, media_type, bytes, size } = artifact;
  const known = id ?? file_id;
  const many = bytes ?? size;
  return {
    id: typeof known === "string" ? known : null,
    name: typeof name === "string" ? name : null,
    media_type: typeof media_type === "string" ? media_type : "application/octet-stream",
    bytes: typeof many === "number" ? many : 0,
  };
}
