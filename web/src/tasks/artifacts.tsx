// Files that a task has made: pictures are shown, everything can be saved.
import type { Task } from "../api/types";
import { Shown } from "../chat/blocks/file";
import { Card } from "../ui/frame";

type File = { id?: string | null; name?: string | null; media_type: string; bytes: number };

export function Artifacts({ task }: { task: Task }) {
  const files = task.artifacts.map(fileOf).filter((each) => each !== null);
  if (files.length === 0) return null;
  return (
    <Card title={files.length === 1 ? "A file that it made" : `${files.length} files that it made`}>
      <div className="flex flex-wrap gap-3">
        {files.map((each, index) => (
          <Shown key={each.id ?? index} file={each} />
        ))}
      </div>
    </Card>
  );
}

function fileOf(artifact: Record<string, unknown>): File | null {
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
