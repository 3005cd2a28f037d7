import { QueryClientProvider } from "@tanstack/react-query";
import { Suspense, useEffect } from "react";
import { Route, Router, Switch } from "wouter";
import { BASE_PATH } from "./api/client";
import { Problem } from "./api/problems";
import { client, keepListsTrue, useAgents } from "./queries";
import { ROUTES } from "./routes";
import { Shell } from "./shell";
import { start, useStore } from "./store";
import { Nothing } from "./ui/empty";
import { SignedOut } from "./ui/signed-out";

export function App({ refused }: { refused: string | null }) {
  return (
    <QueryClientProvider client={client}>
      <Router base={BASE_PATH}>
        <Known refused={refused} />
      </Router>
    </QueryClientProvider>
  );
}

function Known({ refused }: { refused: string | null }) {
  const { error, isSuccess } = useAgents();
  const isOut = useStore((state) => state.link.is === "signed-out");
  useEffect(() => {
    if (!isSuccess) return;
    start();
    return keepListsTrue();
  }, [isSuccess]);
  if (isOut || (error instanceof Problem && (error.status === 401 || error.status === 403)))
    return <SignedOut refused={refused} />;
  return (
    <Shell>
      <Suspense fallback={null}>
        <Switch>
          {ROUTES.map(({ path, page: Page }) => (
            <Route key={path} path={path}>
              <Page />
            </Route>
          ))}
          <Route>
            <Nothing title="There is nothing at this address">Choose a chat at the side, or begin a new one.</Nothing>
          </Route>
        </Switch>
      </Suspense>
    </Shell>
  );
}
