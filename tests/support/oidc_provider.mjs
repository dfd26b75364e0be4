/**
 * Runs a real OpenID provider (the package `oidc-provider`) in a separate process. It prints its
 * address once it listens, and accepts or denies every login according to its settings.
 *
 * The settings are JSON in the environment variable PROVIDER:
 *
 *     port        0 chooses a free one
 *     clients     the clients, in the terms of OpenID Connect's registration
 *     keys        the private keys as JWKs
 *     accounts    the claims of each account, by its name
 *     tls         { cert, key } in PEM form; absent for http
 *     issuer      the issuer if it is not the address
 *
 * A login uses the account set by the last `PUT /control`: { account }, or { deny: true }.
 *
 * The script is plain JavaScript, because the package has no types.
 */
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { Provider } from "oidc-provider";

const settings = JSON.parse(process.env.PROVIDER);
let next = settings.next ?? { account: "ann" };

const server = settings.tls === undefined ? createServer() : createSecureServer(settings.tls);
await new Promise((resolve) => server.listen(settings.port ?? 0, "127.0.0.1", resolve));
const scheme = settings.tls === undefined ? "http" : "https";
const address = `${scheme}://localhost:${server.address().port}`;

const provider = new Provider(settings.issuer ?? address, {
  clients: settings.clients,
  jwks: { keys: settings.keys },
  cookies: { keys: ["one secret of the test"] },
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name", "groups"] },
  conformIdTokenClaims: settings.conformIdTokenClaims ?? false,
  scopes: ["openid", "email", "profile"],
  pkce: { required: () => true },
  features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
  interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
  findAccount: (_context, sub) => {
    const claims = settings.accounts[sub];
    return claims === undefined
      ? undefined
      : { accountId: sub, claims: () => ({ sub, ...claims }) };
  },
  renderError: (context, out) => {
    context.type = "json";
    context.body = out;
  },
});

/**
 * Completes an interaction without a person: logs the account in and consents, or denies the login.
 */
async function interact(request, response) {
  const { params, prompt, session } = await provider.interactionDetails(request, response);
  if (next.deny === true) {
    const refusal = { error: "access_denied", error_description: "the user said no" };
    return provider.interactionFinished(request, response, refusal);
  }
  if (prompt.name === "login") {
    const login = { accountId: next.account };
    return provider.interactionFinished(request, response, { login });
  }
  const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope);
  const consent = { grantId: await grant.save() };
  return provider.interactionFinished(
    request,
    response,
    { consent },
    { mergeWithLastSubmission: true },
  );
}

async function control(request, response) {
  let text = "";
  for await (const chunk of request) text += chunk;
  next = JSON.parse(text);
  response.end("{}");
}

const serve = provider.callback();
server.on("request", (request, response) => {
  const failed = (error) => {
    response.statusCode = 500;
    response.end(String(error));
  };
  if (request.url === "/control") control(request, response).catch(failed);
  else if (request.url.startsWith("/interaction/")) interact(request, response).catch(failed);
  else serve(request, response);
});
process.stdout.write(`${address}\n`);
