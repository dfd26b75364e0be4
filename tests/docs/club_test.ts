/**
 * Tests the pages of the club example as two people use them in Chromium: a chat, a board and
 * files, with the server as the only back end. New members see a space immediately, removed
 * members lose it immediately, and nobody receives a row of a space from before or after their
 * membership. The test records everything that the server sends to a person, and searches it for
 * texts that the person must not receive.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { chromiumMissing, describeUnless } from "../support/requirements.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { onlyThorough } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";
import { accessibilityFaults, launchBrowser, TEST_MS_MAX } from "../ui/browser.ts";
import { exampleCommand } from "./example_commands.ts";
import { ROOT } from "./snippets.ts";

const PASSWORD = "violet river 3";

/**
 * The part of the image type that this test uses. The server's type definitions do not include it.
 */
interface Picture {
  readonly naturalWidth: number;
}

/** A PNG image with a single pixel. */
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

const WRITE_MESSAGE = "INSERT INTO club.messages (space, text) VALUES ($1, 'x')";
const WRITE_CARD = "INSERT INTO club.cards (space, place, title) VALUES ($1, 1, 'x')";

let server: ServerProcess;
let browser: Browser;
let pages: Bun.Subprocess<"ignore", "pipe", "inherit">;
let address = "";

/** Starts the example with its command, and returns the address that it prints. */
async function openClub(): Promise<string> {
  pages = Bun.spawn([...exampleCommand("club")], {
    cwd: ROOT,
    env: { ...process.env, TIDEMARK_URL: server.url, PORT: "0" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  let output = "";
  for await (const chunk of pages.stdout) {
    output += new TextDecoder().decode(chunk);
    const found = /http:\/\/localhost:\d+/.exec(output)?.[0];
    if (found !== undefined) return found;
  }
  throw new Error(`The example ended: ${output}`);
}

/** A person with a separate browser context. */
class Person {
  readonly page: Page;
  readonly name: string;
  readonly faults: string[] = [];
  readonly #received: string[] = [];
  readonly #reading: Promise<unknown>[] = [];

  constructor(name: string, page: Page) {
    this.name = name;
    this.page = page;
    page.setDefaultTimeout(30_000);
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) this.faults.push(message.text());
    });
    page.on("pageerror", (error) => this.faults.push(String(error)));
    page.on("websocket", (socket) => {
      socket.on("framereceived", ({ payload }) => this.#received.push(String(payload)));
    });
    page.on("response", (response) => {
      if (!response.url().startsWith(`${server.url}/v1/api`)) return;
      // The text of a response is unavailable if the page was left before the response was read.
      const text = response.text().catch(() => "");
      this.#reading.push(text.then((body) => this.#received.push(body)));
    });
  }

  /** Returns whether anything that the server has sent contains the given text. */
  async received(text: string): Promise<boolean> {
    await Promise.all(this.#reading);
    return this.#received.some((each) => each.includes(text));
  }

  async makeSpace(name: string): Promise<void> {
    await this.page.getByLabel("Name of a new space").fill(name);
    await this.page.keyboard.press("Enter");
    await this.page.getByRole("heading", { name, level: 2 }).waitFor();
  }

  space(name: string): ReturnType<Page["getByRole"]> {
    return this.page.getByRole("navigation", { name: "Spaces" }).getByRole("link", { name });
  }

  async openMembers(): Promise<ReturnType<Page["getByRole"]>> {
    await this.page.getByRole("button", { name: /^Members: / }).click();
    const dialog = this.page.getByRole("dialog", { name: "Members" });
    await dialog.waitFor();
    return dialog;
  }

  async add(who: Person): Promise<void> {
    const dialog = await this.openMembers();
    await dialog.getByLabel("User name of a new member").fill(who.name);
    await dialog.getByRole("button", { name: "Add" }).click();
    await dialog.getByRole("button", { name: `Remove ${who.name}` }).waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
  }

  async remove(who: Person): Promise<void> {
    const dialog = await this.openMembers();
    const remove = dialog.getByRole("button", { name: `Remove ${who.name}` });
    await remove.click();
    await remove.waitFor({ state: "detached" });
    await dialog.getByRole("button", { name: "Close" }).click();
  }

  async close(): Promise<void> {
    // A heartbeat may be in progress when the membership ends. The server then refuses it with
    // status 403.
    expect(this.faults.filter((text) => !text.includes("a status of 403"))).toEqual([]);
    await this.page.context().close();
  }
}

async function join(name: string, path: string): Promise<Person> {
  const context = await browser.newContext();
  const person = new Person(name, await context.newPage());
  const { page } = person;
  await page.goto(`${address}/${path}`);
  await page.getByRole("button", { name: "I am new here" }).click();
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Create account" }).click();
  await page.getByRole("heading", { name: "No space yet" }).waitFor();
  // When the page starts, it asks whether it can continue a session. The server refuses this
  // request.
  person.faults.length = 0;
  return person;
}

/** Checks the accessibility of the page in both colour schemes and at the width of a phone. */
async function expectAccessible({ page }: Person): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    for (const width of [1100, 390]) {
      await page.setViewportSize({ width, height: 760 });
      expect([colorScheme, width, await accessibilityFaults(page)]).toEqual([
        colorScheme,
        width,
        [],
      ]);
      expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    }
  }
  await page.setViewportSize({ width: 1100, height: 760 });
}

async function tokenOf({ name }: Person): Promise<string> {
  return (await server.login(name, PASSWORD)).access_token;
}

async function idOf(space: string): Promise<unknown> {
  const [[id] = []] = await server.rows("SELECT id FROM club.spaces WHERE name = $1", {
    params: [space],
  });
  return id;
}

/**
 * Expects that the server refuses handwritten statements about a space to which a person does not
 * belong.
 *
 * @param write A statement that writes into the space $1.
 */
async function expectShutOut(person: Person, space: string, write: string): Promise<void> {
  const token = await tokenOf(person);
  const params = [await idOf(space)];
  for (const [table, column] of [
    ["members", "space"],
    ["presence", "room"],
    ["messages", "space"],
    ["cards", "space"],
    ["files", "space"],
  ]) {
    const sql = `SELECT * FROM club.${table} WHERE ${column} = $1`;
    expect(await server.rows(sql, { token, params })).toEqual([]);
  }
  const { body } = await server.sql(write, { token, params });
  expect(body.error?.code).toBe("PERMISSION_DENIED");
}

/**
 * Waits until a person has received a commit that is later than all earlier commits. By then,
 * everything that the server intended to send has arrived.
 */
async function expectCaughtUp(person: Person): Promise<void> {
  await person.makeSpace(`Own space of ${person.name}`);
}

describeUnless(onlyThorough ?? chromiumMissing)("the club", () => {
  beforeAll(async () => {
    server = await startReadyServer({
      config: {
        "security.cors": { allowed_origins: ["http://localhost:*"] },
        auth: { signup: "open", guests: true },
      },
    });
    address = await openClub();
    browser = await launchBrowser();
  }, TEST_MS_MAX);

  afterAll(async () => {
    await browser.close();
    pages.kill();
    await pages.exited;
    await server.stop();
  });

  test(
    "chat: a member sees a space from the invitation until the removal",
    async () => {
      const ann = await join("annika", "chat.html");
      const bob = await join("bernard", "chat.html");
      await ann.makeSpace("Reef");
      await ann.page.getByLabel("Message", { exact: true }).fill("canary before");
      await ann.page.keyboard.press("Enter");
      await ann.page.locator(".message:not(.waiting)", { hasText: "canary before" }).waitFor();
      await expectShutOut(bob, "Reef", WRITE_MESSAGE);
      expect(await bob.received("canary")).toBe(false);
      expect(await bob.received("Reef")).toBe(false);

      await ann.add(bob);
      await bob.page.getByRole("heading", { name: "Reef", level: 2 }).waitFor();
      await bob.page.getByText("canary before").waitFor();
      await bob.page
        .getByLabel("Message", { exact: true })
        .fill("see https://example.com/a, <b>bob</b>");
      await bob.page.keyboard.press("Enter");
      const message = ann.page.locator(".message", { hasText: "<b>bob</b>" });
      await message.waitFor();
      expect(await message.getByRole("link").getAttribute("href")).toBe("https://example.com/a");
      await expectAccessible(bob);

      // The name comes from a join, so it also changes in existing messages.
      await bob.page.getByRole("button", { name: "bernard", exact: true }).click();
      await bob.page.getByLabel("Name that others see").fill("Bernard B.");
      await bob.page.keyboard.press("Enter");
      await message.getByText("Bernard B.").waitFor();
      await bob.page.getByLabel("Message", { exact: true }).press("ArrowUp");
      await bob.page.keyboard.press("ControlOrMeta+a");
      await bob.page.keyboard.type("second thoughts");
      await bob.page.keyboard.press("Enter");
      await ann.page.getByText("second thoughts (edited)").waitFor();

      await bob.page.reload();
      await bob.page.getByText("canary before").waitFor();
      const removal = ann.openMembers();
      await (await removal).getByRole("button", { name: "Remove Bernard B." }).click();
      await bob.page.getByText("“Reef” is no longer open to you.").waitFor();
      await bob.page.getByRole("heading", { name: "No space yet" }).waitFor();
      expect(await bob.page.getByText("canary").count()).toBe(0);
      await ann.page.getByRole("button", { name: "Close" }).click();
      await ann.page.getByLabel("Message", { exact: true }).fill("canary after");
      await ann.page.keyboard.press("Enter");
      await ann.page.locator(".message:not(.waiting)", { hasText: "canary after" }).waitFor();
      await expectCaughtUp(bob);
      expect(await bob.received("canary after")).toBe(false);
      await expectShutOut(bob, "Reef", WRITE_MESSAGE);
      await ann.close();
      await bob.close();
    },
    TEST_MS_MAX,
  );

  test(
    "chat: unread messages are counted and read messages are not, even after a reload",
    async () => {
      const cleo = await join("cleopatra", "chat.html");
      const dirk = await join("dirkje", "chat.html");
      for (const name of ["Bay", "Cove", "Home"]) await dirk.makeSpace(name);
      await cleo.makeSpace("Harbour");
      await cleo.add(dirk);
      await dirk.space("Harbour").waitFor();
      for (const text of ["one", "two"]) {
        await cleo.page.getByLabel("Message", { exact: true }).fill(text);
        await cleo.page.keyboard.press("Enter");
        await cleo.page.locator(".message:not(.waiting)", { hasText: text }).waitFor();
      }
      await dirk.space("Harbour 2").waitFor();
      await dirk.page.keyboard.press("Alt+ArrowUp");
      await dirk.page.getByText("two").waitFor();
      await dirk.page.getByRole("link", { name: "Harbour", exact: true }).waitFor();
      await dirk.page.reload();
      await dirk.page.getByText("two").waitFor();
      await dirk.page.getByRole("link", { name: "Harbour", exact: true }).waitFor();
      // Only the owner changes the list of members, but any member may leave.
      const dialog = await dirk.openMembers();
      expect(await dialog.getByRole("button", { name: /^Remove/ }).count()).toBe(0);
      await dialog.getByRole("button", { name: "Leave the space" }).click();
      await dialog.getByRole("button", { name: "Leave the space: really?" }).click();
      await dirk.space("Harbour").waitFor({ state: "detached" });
      await cleo.close();
      await dirk.close();
    },
    TEST_MS_MAX,
  );

  test(
    "chat: members see who is present and who is typing, until a page is closed",
    async () => {
      const mona = await join("monalisa", "chat.html");
      const nils = await join("nilsson", "chat.html");
      await mona.makeSpace("Pier");
      const here = (names: string): ReturnType<Page["getByRole"]> =>
        mona.page.getByRole("button", { name: `Members: ${names}`, exact: true });
      await here("monalisa (here)").waitFor();
      await mona.add(nils);
      await here("monalisa (here), nilsson (here)").waitFor();
      await nils.page.getByLabel("Message", { exact: true }).pressSequentially("well");
      await mona.page.getByText("nilsson is typing …").waitFor();
      expect(await nils.page.getByText("is typing").count()).toBe(0);
      await nils.page.keyboard.press("Enter");
      await mona.page.getByText("nilsson is typing …").waitFor({ state: "detached" });
      await mona.page.locator(".message", { hasText: "well" }).waitFor();
      await nils.close();
      await here("monalisa (here), nilsson").waitFor();
      await mona.close();
    },
    TEST_MS_MAX,
  );

  test(
    "board: members move cards by mouse and by keyboard, and lose them with their membership",
    async () => {
      const emma = await join("emmanuelle", "board.html");
      const fred = await join("frederick", "board.html");
      await emma.makeSpace("Voyage");
      for (const title of ["canary sails", "canary charts"]) {
        await emma.page.getByLabel("New card in To do").fill(title);
        await emma.page.keyboard.press("Enter");
        await emma.page.getByRole("button", { name: title }).waitFor();
      }
      await expectShutOut(fred, "Voyage", WRITE_CARD);
      expect(await fred.received("canary")).toBe(false);
      await emma.add(fred);

      const listOf = (person: Person, list: string): Promise<string[]> =>
        person.page.getByRole("region", { name: list }).locator(".task .title").allInnerTexts();
      const shows = (person: Person, list: string, ...titles: string[]): Promise<void> =>
        until(async () => (await listOf(person, list)).join() === titles.join());
      await shows(fred, "To do", "canary sails", "canary charts");
      await fred.page
        .getByRole("button", { name: "canary charts" })
        .dragTo(fred.page.getByRole("list", { name: "Doing" }));
      await shows(emma, "Doing", "canary charts");
      await emma.page.getByRole("button", { name: "canary charts" }).focus();
      await emma.page.keyboard.press("Alt+ArrowLeft");
      await shows(fred, "To do", "canary sails", "canary charts");
      await shows(emma, "To do", "canary sails", "canary charts");
      await emma.page.keyboard.press("Alt+ArrowUp");
      await shows(fred, "To do", "canary charts", "canary sails");
      await shows(emma, "To do", "canary charts", "canary sails");
      await emma.page.keyboard.press("ArrowDown");
      await emma.page.keyboard.press("Enter");
      const dialog = emma.page.getByRole("dialog", { name: "Card" });
      await dialog.getByLabel("Note").fill("the red ones");
      await dialog.getByLabel("Who").selectOption("frederick");
      await dialog.getByLabel("List").selectOption("done");
      await dialog.getByRole("button", { name: "Save" }).click();
      await shows(fred, "Done", "canary sails");
      await fred.page.getByRole("button", { name: "canary sails" }).locator(".avatar").waitFor();
      await expectAccessible(fred);

      await emma.remove(fred);
      await fred.page.getByRole("heading", { name: "No space yet" }).waitFor();
      await emma.page.getByLabel("New card in Doing").fill("canary after");
      await emma.page.keyboard.press("Enter");
      await emma.page.getByRole("button", { name: "canary after" }).waitFor();
      await expectCaughtUp(fred);
      expect(await fred.received("canary after")).toBe(false);
      await expectShutOut(fred, "Voyage", WRITE_CARD);
      await emma.close();
      await fred.close();
    },
    TEST_MS_MAX,
  );

  test(
    "board: a card can be moved between two cards even if no number lies between their positions",
    async () => {
      const gina = await join("gianina", "board.html");
      await gina.makeSpace("Tight");
      const token = await tokenOf(gina);
      // No double lies between these positions, so the cards have to be renumbered.
      await server.rows(
        "INSERT INTO club.cards (space, place, title) VALUES ($1, 1, 'a'), ($1, 1.0000000000000002, 'b'), ($1, 2, 'c')",
        { token, params: [await idOf("Tight")] },
      );
      const card = gina.page.getByRole("button", { name: "c", exact: true });
      await card.focus();
      await gina.page.keyboard.press("Alt+ArrowUp");
      await until(async () => {
        const titles = await gina.page.locator(".task .title").allInnerTexts();
        return titles.join() === "a,c,b";
      });
      await gina.close();
    },
    TEST_MS_MAX,
  );

  test(
    "files: members see pictures through signed URLs, which expire with the membership",
    async () => {
      const hugo = await join("hugoline", "files.html");
      const ines = await join("inesita", "files.html");
      await hugo.makeSpace("Album");
      const picker = hugo.page.locator("input[type=file]");
      await picker.setInputFiles([
        { name: "canary.png", mimeType: "image/png", buffer: PNG },
        { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("canary inside") },
      ]);
      await hugo.page.getByRole("button", { name: "Save notes.txt" }).waitFor();
      expect(await ines.received("canary")).toBe(false);

      // The first attempt to load the picture fails, as it would with an expired URL.
      await ines.page.route("**/v1/files/**", (route) => route.fulfill({ status: 404 }), {
        times: 1,
      });
      await hugo.add(ines);
      const image = ines.page.getByRole("img", { name: "canary.png" });
      await image.waitFor();
      await until(() => image.evaluate<boolean, Picture>(({ naturalWidth }) => naturalWidth === 1));
      expect(ines.faults.splice(0)).toHaveLength(1);
      const url = (await image.getAttribute("src")) ?? "";
      expect((await fetch(url)).status).toBe(200);
      expect(await ines.page.getByRole("button", { name: /^Remove/ }).count()).toBe(0);
      const [download] = await Promise.all([
        ines.page.waitForEvent("download"),
        ines.page.getByRole("button", { name: "Save notes.txt" }).click(),
      ]);
      expect(download.suggestedFilename()).toBe("notes.txt");
      expect(await Bun.file(await download.path()).text()).toBe("canary inside");
      await ines.page.getByRole("button", { name: "Show canary.png" }).click();
      await ines.page.getByRole("dialog", { name: "canary.png" }).waitFor();
      await ines.page.keyboard.press("Escape");
      await expectAccessible(ines);

      await hugo.remove(ines);
      await ines.page.getByRole("heading", { name: "No space yet" }).waitFor();
      expect((await fetch(url)).status).toBe(404);
      await picker.setInputFiles([
        { name: "canary-after.png", mimeType: "image/png", buffer: PNG },
      ]);
      await hugo.page.getByRole("button", { name: "Save canary-after.png" }).waitFor();
      await expectCaughtUp(ines);
      expect(await ines.received("canary-after")).toBe(false);
      await hugo.page.getByRole("button", { name: "Remove canary.png" }).click();
      await hugo.page
        .getByRole("img", { name: "canary.png", exact: true })
        .waitFor({ state: "detached" });
      await hugo.close();
      await ines.close();
    },
    TEST_MS_MAX,
  );

  test(
    "a guest becomes a user, and keeps the account, its spaces and its messages",
    async () => {
      const context = await browser.newContext();
      const guest = new Person("a guest", await context.newPage());
      await guest.page.goto(`${address}/chat.html`);
      await guest.page.getByRole("button", { name: "Look around as a guest" }).click();
      await guest.makeSpace("Wanderings");
      await guest.page.getByLabel("Message", { exact: true }).fill("from before");
      await guest.page.keyboard.press("Enter");
      await guest.page.locator(".message:not(.waiting)", { hasText: "from before" }).waitFor();
      await guest.page.getByRole("button", { name: /^Guest / }).click();
      const dialog = guest.page.getByRole("dialog", { name: "You are a guest" });
      await dialog.getByLabel("Name").fill("katinka");
      await dialog.getByLabel("Password").fill(PASSWORD);
      await dialog.getByRole("button", { name: "Create account" }).click();
      await guest.page.getByText("You can log in as “katinka” from now on.").waitFor();
      await guest.page.locator(".by", { hasText: "katinka" }).waitFor();

      const again = await (await browser.newContext()).newPage();
      await again.goto(`${address}/chat.html`);
      await again.getByLabel("Name").fill("katinka");
      await again.getByLabel("Password").fill(PASSWORD);
      await again.getByRole("button", { name: "Log in" }).click();
      await again.getByText("from before").waitFor();
      await again.context().close();
      // The account is still the same, so other people find it under its new name.
      const lena = await join("lenuschka", "chat.html");
      await lena.makeSpace("Harvest");
      await lena.add(new Person("katinka", guest.page));
      await guest.space("Harvest").waitFor();
      await lena.close();
      await context.close();
    },
    TEST_MS_MAX,
  );

  test(
    "the pages explain a taken name, a wrong password and an unknown member",
    async () => {
      const jana = await join("janneke", "chat.html");
      await jana.makeSpace("Alone");
      const dialog = await jana.openMembers();
      await dialog.getByLabel("User name of a new member").fill("nobody");
      await dialog.getByRole("button", { name: "Add" }).click();
      await jana.page.getByText("Nobody here is called “nobody”.").waitFor();
      await dialog.getByLabel("User name of a new member").fill("janneke");
      await dialog.getByRole("button", { name: "Add" }).click();
      await jana.page.getByText("“janneke” is already a member.").waitFor();
      await dialog.getByRole("button", { name: "Close" }).click();
      // Another tab of the browser shares the session, and must notice that the session has ended.
      const tab = await jana.page.context().newPage();
      await tab.goto(`${address}/board.html`);
      await tab.getByRole("heading", { name: "Alone", level: 2 }).waitFor();
      await jana.page.getByRole("button", { name: "janneke", exact: true }).click();
      await jana.page.getByRole("button", { name: "Log out" }).click();
      await jana.page.getByRole("heading", { name: "Come in" }).waitFor();
      await tab.getByRole("heading", { name: "Come in" }).waitFor();
      await tab.close();

      await jana.page.getByLabel("Name").fill("janneke");
      await jana.page.getByLabel("Password").fill("not the password");
      await jana.page.getByRole("button", { name: "Log in" }).click();
      await jana.page.getByRole("alert").filter({ hasText: /./ }).waitFor();
      await jana.page.getByRole("button", { name: "I am new here" }).click();
      await jana.page.getByRole("button", { name: "Create account" }).click();
      await jana.page.getByText("the name may already be taken").waitFor();
      await expectAccessible(jana);
      await jana.page.getByRole("button", { name: "I have an account" }).click();
      await jana.page.getByLabel("Password").fill(PASSWORD);
      await jana.page.keyboard.press("Enter");
      await jana.page.getByRole("heading", { name: "Alone", level: 2 }).waitFor();
      // The browser console reports refused requests as errors.
      expect(jana.faults.filter((text) => !/status of 40[01]/.test(text))).toEqual([]);
      await jana.page.context().close();
    },
    TEST_MS_MAX,
  );
});
