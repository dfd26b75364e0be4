/** Lists the endpoints of a server, as found in its own route table. */
import { systemClock } from "../../src/base/clock.ts";
import { Connections } from "../../src/server/connections/connections.ts";
import { endpointsOf } from "../../src/server/endpoints.ts";
import { Cors } from "../../src/server/http/cors.ts";
import { ClientMemory } from "../../src/server/measures/client_memory.ts";
import { Metrics } from "../../src/server/measures/metrics.ts";
import type { TestServer } from "./http.ts";
import { noBugs } from "./no_bugs.ts";

/** Returns a server's endpoints, each as "<method> <path>". */
export function endpointsServed(server: TestServer): readonly string[] {
  const gauges = {
    sockets: () => 0,
    eventStreams: () => 0,
    subscriptions: () => 0,
    delivery: () => server.options.live.delivery(),
    topics: () => server.options.topics.figures(),
    webhooks: server.options.webhookFigures,
    requestsRunning: () => 0,
    descriptors: () => undefined,
    bugs: () => 0,
    archive: () => undefined,
    storage: server.options.storageState,
    memory: server.options.memoryParts,
    memoryGivenBack: server.options.memoryGivenBack,
    readers: server.options.readerCounts,
  };
  const connections = new Connections(systemClock, noBugs);
  const { prefixes, routes } = endpointsOf(server.options, {
    cors: new Cors(server.options.config, { warn() {} }),
    connections,
    clientMemory: new ClientMemory(server.options, connections),
    metrics: new Metrics({ clock: systemClock, version: "1.2.3", gauges }),
    isStopping: () => false,
    beginStream: () => () => undefined,
    nextNumber: () => 1,
    url: () => server.url,
  });
  return [
    ...routes.map(({ method, path }) => `${method} ${path}`),
    ...prefixes.map(({ method, prefix, template }) => `${method} ${prefix}${template}`),
  ];
}
