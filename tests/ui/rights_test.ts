/**
 * Verifies that an administrator sees and changes all rights on one page: roles, service tokens,
 * links to providers, sign-up and invitations. Every list is a live query, so it also shows changes
 * made by others. `ui_test.ts` tests policies, because a usual run starts only one browser.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { chromiumMissing, describeUnless } from "../support/requirements.ts";
import { type ServerProcess, startServer } from "../support/server_process.ts";
import { onlyThorough } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";
import { accessibilityFaults, launchBrowser, TEST_MS_MAX } from "./browser.ts";
import { openForm, openRights as openRightsOf, sectionOf } from "./rights_page.ts";

describeUnless(onlyThorough ?? chromiumMissing)("the page about rights", () => {
  let browser: Browser;
  let server: ServerProcess;

  beforeAll(async () => {
    [browser, server] = await Promise.all([
      launchBrowser(),
      startServer({
        config: { server: { ui_enabled: true }, auth: { signup: "invitation", guests: true } },
      }),
    ]);
    await server.setup();
    await server.rows(
      "CREATE NAMESPACE chat; CREATE USER 'mailer' INTERNAL ROLE service; CREATE USER 'eve' INTERNAL",
    );
  }, TEST_MS_MAX);

  afterAll(async () => {
    await browser.close();
    await server.stop();
  });

  const openRights = (
    options?: Parameters<typeof openRightsOf>[2],
  ): ReturnType<typeof openRightsOf> => openRightsOf(browser, server, options);

  test(
    "a service token is created with scopes, its secret is shown once, and it works until it is dropped",
    async () => {
      const { close, faults, page } = await openRights();
      const tokens = sectionOf(page, "Service tokens");
      const form = await openForm(tokens, "Create token");
      await form.getByLabel("Name", { exact: true }).fill("nightly");
      await form.getByLabel("For user").fill("mailer");
      await form.getByLabel("Namespaces").fill("chat");
      await form.getByRole("button", { name: "Create token" }).click();
      const secret = await tokens.locator(".rights-secret code").innerText();
      expect(secret).toStartWith("tdm_");
      const row = tokens.getByRole("row", { name: /^nightly mailer READ, NAMESPACE chat/ });
      await row.waitFor();
      expect((await server.sql("SELECT 1", { token: secret })).status).toBe(200);
      await tokens.getByRole("button", { name: "Hide it" }).click();
      expect(await page.getByText(secret).count()).toBe(0);
      await row.getByRole("button", { name: "Drop nightly" }).click();
      await row.getByRole("button", { name: "Do you really want to drop nightly?" }).click();
      await tokens.getByText("No service tokens yet.").waitFor();
      expect((await server.sql("SELECT 1", { token: secret })).status).toBe(401);
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );

  test(
    "links of accounts to logins at providers are shown, added and dropped",
    async () => {
      const { close, faults, page } = await openRights();
      const links = sectionOf(page, "Logins through providers");
      await links.getByText("No account is linked to a provider yet.").waitFor();
      const form = await openForm(links, "Link a login");
      for (const subject of ["first", "second"]) {
        await form.getByLabel("Name").fill("mailer");
        await form.getByLabel("Provider").fill("idp");
        await form.getByLabel("Subject").fill(subject);
        await form.getByRole("button", { name: "Link a login" }).click();
        await links.getByRole("row", { name: `mailer idp ${subject}` }).waitFor();
      }
      const row = links.getByRole("row", { name: "mailer idp first" });
      await row.getByRole("button", { name: "Drop idp first of mailer" }).click();
      await row
        .getByRole("button", { name: "Do you really want to drop idp first of mailer?" })
        .click();
      await row.waitFor({ state: "detached" });
      const sql = "SELECT auth_data FROM system.users WHERE user_id = 'mailer'";
      expect(String(await server.rows(sql))).toContain("second");
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );

  test(
    "roles can be changed, invitations created and dropped, and the state of sign-up is shown",
    async () => {
      const { close, faults, page } = await openRights();
      const users = sectionOf(page, "User roles");
      expect(await users.getByLabel("Role of ada").isDisabled()).toBe(true);
      await users.getByLabel("Role of eve").selectOption("service");
      const sql = "SELECT role FROM system.users WHERE user_id = 'eve'";
      await until(async () => (await server.rows(sql))[0]?.[0] === "service");

      const signUp = sectionOf(page, "Sign-up");
      await signUp
        .getByRole("row", { name: /^auth\.signup invitation who can create an account/ })
        .waitFor();
      await signUp.getByRole("row", { name: /^auth\.guests true/ }).waitFor();
      const invitations = sectionOf(page, "Invitations");
      const form = await openForm(invitations, "Create invitation");
      await form.getByLabel("Name").fill("spring");
      await form.getByRole("button", { name: "Create invitation" }).click();
      const invitation = await invitations.locator(".rights-secret code").innerText();
      const answer = await server.post("/v1/api/auth/signup", {
        user: "newcomer",
        password: "violet river 3",
        invitation,
      });
      expect(answer.status).toBe(202);
      const row = invitations.getByRole("row", { name: /^spring 1 of 20/ });
      await row.waitFor();
      await users.getByLabel("Role of newcomer").waitFor();
      await row.getByRole("button", { name: "Drop spring" }).click();
      await row.getByRole("button", { name: "Do you really want to drop spring?" }).click();
      await invitations.getByText("No invitations yet.").waitFor();
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );

  test(
    "the page supports its address and the history, and axe finds no fault, even on a telephone",
    async () => {
      const { close, faults, page } = await openRights({ colorScheme: "dark" });
      expect(page.url()).toEndWith("#/rights");
      for (const summary of await page.locator(".rights-add summary").all()) await summary.click();
      for (const width of [1100, 390]) {
        await page.setViewportSize({ width, height: 800 });
        expect(await accessibilityFaults(page)).toEqual([]);
        expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(
          true,
        );
      }
      await page.reload();
      await page.getByRole("heading", { name: "Rights", level: 2 }).waitFor();
      await page.goBack();
      await page.getByRole("button", { name: "Run" }).waitFor();
      await page.goForward();
      await page.getByRole("heading", { name: "Rights", level: 2 }).waitFor();
      await page.getByRole("button", { name: "Log out" }).click();
      await page.getByRole("heading", { name: "Log in" }).waitFor();
      expect(page.url()).not.toContain("rights");
      expect(faults()).toEqual([]);
      await close();
    },
    TEST_MS_MAX,
  );
});
