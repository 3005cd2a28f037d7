import { LogIn } from "lucide-react";
import { Nothing, Refused } from "./empty";

export function SignedOut({ refused }: { refused: string | null }) {
  return (
    <main className="h-full">
      <Nothing title="You are not signed in" icon={<LogIn className="size-6" />}>
        {refused && <Refused>{refused}</Refused>}
        <p className="mt-3">
          A link works once. Print a new one in the folder of the server, and open it in this browser:
        </p>
        <pre className="mt-3 rounded-xl border border-line bg-panel p-3 font-mono text-ink">outlast open</pre>
      </Nothing>
    </main>
  );
}
