/** A WebSocket server that does nothing, used to measure what a socket costs the runtime alone. */
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: (request, it) => (it.upgrade(request) ? undefined : new Response(null, { status: 426 })),
  websocket: { idleTimeout: 0, sendPings: false, message: () => undefined },
});
process.stdout.write(`listening ${server.url.origin} \n`);
