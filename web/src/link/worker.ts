// The hub in a worker that all tabs share: browsers allow six connections to a server, over all tabs.
import { Hub } from "./hub";
import type { ToHub } from "./protocol";

const hub = new Hub();
const scope = self as unknown as { onconnect: ((event: MessageEvent) => void) | null };

scope.onconnect = ({ ports }) => {
  const [port] = ports;
  if (port === undefined) return;
  port.onmessage = ({ data }: MessageEvent<ToHub>) => hub.take(port, data);
  port.start();
};
