/**
 * Verifies that the server reaches a provider over TLS only if it trusts the provider's
 * certificate. The test uses real server processes and a certified OpenID provider in a separate
 * process.
 */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { certificateFor, hasOpenssl } from "../support/certificates.ts";
import { Browser, freePort, RealProvider, signingKey } from "../support/oidc_provider.ts";
import { startReadyServer } from "../support/server_process.ts";

const SECRET = "the secret of the client: +/%&=";

const LOGIN = "/v1/api/auth/oidc/idp/login";

test.skipIf(!hasOpenssl)(
  "a provider is reached over TLS if its certificate is trusted, even below a sub-path",
  async () => {
    const tls = certificateFor("localhost");
    const directory = mkdtempSync(join(tmpdir(), "tidemark-oidc-"));
    const trusted = join(directory, "ca.pem");
    writeFileSync(trusted, tls.cert);
    const port = freePort();
    const address = `http://127.0.0.1:${port}/db`;
    try {
      await using secure = await RealProvider.start({
        clients: [
          {
            client_id: "db",
            client_secret: SECRET,
            redirect_uris: [`${address}/v1/api/auth/oidc/idp/callback`],
            grant_types: ["authorization_code"],
            response_types: ["code"],
          },
        ],
        keys: [await signingKey("first")],
        accounts: { ann: { email: "ann@example.com", email_verified: true } },
        tls,
        conformIdTokenClaims: true,
      });
      const config = {
        server: { port, base_path: "/db" },
        oidc: { auto_provision: true },
        "oidc.providers.idp": { issuer: secure.url, client_id: "db", client_secret: SECRET },
      };
      await using trusting = await startReadyServer({
        config,
        env: { NODE_EXTRA_CA_CERTS: trusted },
      });
      const browser = new Browser({ ca: tls.cert });
      expect((await browser.go(`${trusting.url}/db${LOGIN}`)).url.pathname).toBe("/db/ui");
      // With this provider, the email address comes from the userinfo endpoint.
      const emails = "SELECT email FROM system.users WHERE user_id = 'oidc:idp:ann'";
      expect(await trusting.rows(emails)).toEqual([["ann@example.com"]]);
      await using doubting = await startReadyServer({ config: { ...config, server: { port: 0 } } });
      const failed = await new Browser({ ca: tls.cert }).go(doubting.url + LOGIN);
      expect(failed.url.pathname).toBe("/ui/login");
      expect(failed.url.searchParams.get("error")).toBe("exchange_failed");
      expect(doubting.output).toContain("SELF_SIGNED");
    } finally {
      rmSync(directory, { recursive: true });
    }
  },
);
