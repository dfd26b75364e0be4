/**
 * Tests login through a provider as users experience it, with a real Chromium, the real server,
 * and a certified provider on a different site.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { freePort, RealProvider, signingKey } from "../support/oidc_provider.ts";
import { chromiumMissing, describeUnless } from "../support/requirements.ts";
import { type ServerProcess, startServer } from "../support/server_process.ts";
import { onlyThorough } from "../support/thoroughness.ts";
import { accessibilityFaults, launchBrowser, openPage, TEST_MS_MAX } from "./browser.ts";

describeUnless(onlyThorough ?? chromiumMissing)("the login page", () => {
  let browser: Browser;
  let provider: RealProvider;
  let server: ServerProcess;

  beforeAll(async () => {
    const port = freePort();
    const callback = `http://127.0.0.1:${port}/v1/api/auth/oidc/idp/callback`;
    const client = {
      client_id: "db",
      client_secret: "secret of the client",
      redirect_uris: [callback],
    };
    provider = await RealProvider.start({
      clients: [client],
      keys: [await signingKey("first")],
      accounts: { boss: {}, ann: {} },
    });
    [browser, server] = await Promise.all([
      launchBrowser(),
      startServer({
        config: {
          server: { port, ui_enabled: true },
          oidc: { auto_provision: true },
          "oidc.providers.idp": {
            issuer: provider.url,
            client_id: client.client_id,
            client_secret: client.client_secret,
            label: "Example",
          },
        },
      }),
    ]);
    await server.setup();
    await server.rows(`CREATE USER boss OAUTH '{"provider":"idp","subject":"boss"}' ROLE dba`);
  }, TEST_MS_MAX);

  afterAll(async () => {
    await browser.close();
    await server.stop();
    await provider[Symbol.asyncDispose]();
  });

  test(
    "the login leads through the provider to the workbench, where the session survives a reload",
    async () => {
      await provider.next({ account: "boss" });
      const { close, page } = await openPage(browser, server);
      const button = page.getByRole("button", { name: "Log in with Example" });
      await button.waitFor();
      expect(await accessibilityFaults(page)).toEqual([]);
      await button.click();
      await page.getByRole("button", { name: "Run" }).waitFor();
      await page.getByText("boss · dba").waitFor();
      await page.reload();
      await page.getByText("boss · dba").waitFor();
      await page.getByRole("button", { name: "Log out" }).click();
      await button.waitFor();
      await close();
    },
    TEST_MS_MAX,
  );

  test(
    "the page explains once why a login failed, and that it is for administrators",
    async () => {
      const { close, page } = await openPage(browser, server);
      const button = page.getByRole("button", { name: "Log in with Example" });
      await provider.next({ deny: true });
      await button.click();
      await page.getByText("The provider did not allow the login.").waitFor();
      expect(new URL(page.url()).pathname + new URL(page.url()).search).toBe("/ui");
      await page.reload();
      await button.waitFor();
      expect(await page.getByText("did not allow the login").count()).toBe(0);
      await provider.next({ account: "ann" });
      await button.click();
      await page.getByText("This page is only for administrators").waitFor();
      await close();
    },
    TEST_MS_MAX,
  );
});
