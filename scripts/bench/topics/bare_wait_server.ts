/**
 * An HTTP server that does nothing but wait. It reads each request, waits until the client
 * disconnects or the requested number of seconds has passed, and responds. It shows what a waiting
 * request costs the runtime alone.
 */
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  fetch: async (request) => {
    request.headers.get("authorization");
    const { timeout_seconds: seconds } = (await request.json()) as { timeout_seconds: number };
    return answerLater(request, seconds);
  },
});
process.stdout.write(`listening ${server.url.origin} \n`);

/**
 * Waits before it responds. This must be a separate function. Otherwise, the state of the function
 * that reads the body would stay in memory during the wait.
 */
function answerLater({ signal }: Request, seconds: number): Promise<Response> {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  signal.addEventListener("abort", resolve);
  setTimeout(resolve, seconds * 1000);
  return promise.then(() => new Response("{}"));
}
