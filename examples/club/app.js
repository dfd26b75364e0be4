/**
 * The frame of the three pages: the session, the header, and the list of spaces. Each page passes
 * `startApp` a function that shows one space.
 *
 * There is no program behind these pages. The policies in schema.sql decide what each person may
 * see and do, by the token of that person.
 */
import { h, messageOf, say, sayFailure } from "./elements.js";
import { Spaces } from "./spaces.js";

const url = document.querySelector("meta[name=tidemark]").content;
const { createClient } = await import(`${url}/v1/client.js`);

const PAGES = [
  ["chat.html", "Chat"],
  ["board.html", "Board"],
  ["files.html", "Files"],
];

const state = h("span", { class: "state", role: "status" });

export const db = createClient({
  url,
  // The session continues after a reload, and all three pages share it.
  session: "storage",
  onConnection: (connection) => {
    state.dataset.state = connection;
    state.textContent = connection === "open" || connection === "idle" ? "" : "Reconnecting …";
  },
  onSignedOut: () => location.reload(),
});

/**
 * Starts a page.
 *
 * @param open Shows a space in an element, and returns a function that ends it. @param badges
 * Follows the numbers next to the names of spaces, and reports each new Map of them.
 */
export async function startApp({ badges, open }) {
  showTheme(localStorage.getItem("club.theme") ?? "system");
  let me;
  try {
    ({ user: me } = await db.session.refresh());
  } catch (error) {
    if (error?.name === "ConnectionError") return showUnreachable(error);
    if (error?.name !== "ServerError") throw error;
    me = await askWhoItIs();
  }
  await show(me, { badges, open });
}

async function show(me, { badges, open }) {
  // Everybody appears in the list of people from their first visit, with a name that they may
  // change.
  const first = me.id.startsWith("guest-") ? `Guest ${me.id.slice(-4)}` : me.id;
  await db.execute("INSERT INTO club.people (name) VALUES ($1) ON CONFLICT (user_id) DO NOTHING", {
    params: [first],
  });
  const [{ name }] = await db.query("SELECT name FROM club.people WHERE user_id = CURRENT_USER()");
  const view = h("main", { class: "view", id: "view" });
  const spaces = new Spaces({ db, me, view, open });
  document.body.replaceChildren(
    h("a", { class: "skip", href: "#view", onclick: focusView }, "Skip to the content"),
    header(me, name),
    h("div", { class: "frame" }, spaces.list, view),
  );
  spaces.start();
  badges?.({ db, me, tell: (numbers) => spaces.showBadges(numbers) });
}

function focusView(event) {
  event.preventDefault();
  const view = document.querySelector("#view");
  view.tabIndex = -1;
  view.focus();
}

function header(me, name) {
  const here = location.pathname.split("/").at(-1);
  const links = PAGES.map(([page, title]) =>
    h(
      "a",
      { href: page, ...(page === here && { "aria-current": "page" }), onclick: keepSpace },
      title,
    ),
  );
  return h(
    "header",
    { class: "top" },
    h("h1", {}, "Club"),
    h("nav", { "aria-label": "Pages" }, links),
    state,
    h("span", { class: "gap" }),
    themeButton(),
    h("button", { type: "button", class: "quiet", onclick: () => void openProfile(me) }, name),
  );
}

/** When the user follows a link, the next page shows the same space. */
function keepSpace({ currentTarget: link }) {
  link.hash = location.hash;
}

async function openProfile(me) {
  const { openProfileDialog } = await import("./profile.js");
  await openProfileDialog({ db, me }).catch(sayFailure);
}

const THEMES = { system: "◐", light: "☀", dark: "☾" };

function themeButton() {
  const button = h("button", { type: "button", class: "quiet", onclick: turn });
  const label = () => {
    const theme = localStorage.getItem("club.theme") ?? "system";
    button.textContent = THEMES[theme];
    button.title = `Colours: ${theme}`;
    button.setAttribute("aria-label", button.title);
  };
  function turn() {
    const names = Object.keys(THEMES);
    const theme = localStorage.getItem("club.theme") ?? "system";
    const next = names[(names.indexOf(theme) + 1) % names.length];
    localStorage.setItem("club.theme", next);
    showTheme(next);
    label();
  }
  label();
  return button;
}

function showTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** Shows the form for returning and for new people until somebody has logged in. */
function askWhoItIs() {
  const { promise, resolve } = Promise.withResolvers();
  const fault = h("p", { class: "fault", role: "alert" });
  const submit = h("button", { class: "primary" });
  const other = h("button", { type: "button", class: "link", onclick: () => ask(!isNew) });
  const guest = h(
    "button",
    { type: "button", onclick: () => void enter(() => db.account.beginAsGuest()) },
    "Look around as a guest",
  );
  const title = h("h1", {});
  const password = h("input", { name: "password", type: "password", required: true });
  const user = h("input", {
    name: "user",
    required: true,
    autocomplete: "username",
    autocapitalize: "none",
    spellcheck: "false",
  });
  let isNew = false;
  function ask(next) {
    isNew = next;
    fault.textContent = "";
    title.textContent = isNew ? "Join the club" : "Come in";
    submit.textContent = isNew ? "Create account" : "Log in";
    other.textContent = isNew ? "I have an account" : "I am new here";
    password.autocomplete = isNew ? "new-password" : "current-password";
    user.focus();
  }
  const form = h(
    "form",
    { class: "card", onsubmit: (event) => void send(event) },
    title,
    h("label", {}, "Name", user),
    h("label", {}, "Password", password),
    fault,
    submit,
    guest,
    other,
  );
  function send(event) {
    event.preventDefault();
    const fields = { user: user.value.trim(), password: password.value };
    return enter(() =>
      isNew ? db.account.signUp(fields) : db.session.login(fields.user, fields.password),
    );
  }
  async function enter(begin) {
    submit.disabled = true;
    try {
      resolve((await begin()).user);
    } catch (error) {
      if (error?.name !== "ServerError" && error?.name !== "ConnectionError") throw error;
      fault.textContent = messageOf(error);
      password.select();
    } finally {
      submit.disabled = false;
    }
  }
  document.body.replaceChildren(h("main", { class: "gate" }, form));
  ask(false);
  return promise;
}

function showUnreachable(error) {
  const again = h("button", { class: "primary", onclick: () => location.reload() }, "Try again");
  const text = h("p", {}, messageOf(error));
  document.body.replaceChildren(
    h("main", { class: "gate" }, h("div", { class: "card" }, h("h1", {}, "Closed"), text, again)),
  );
  again.focus();
}

export async function leave() {
  try {
    await db.session.logout();
  } catch (error) {
    // The page forgets the session in any case, and the session expires on the server.
    if (error?.name === "ConnectionError") say("The server could not be reached.");
    else if (error?.name !== "ServerError") throw error;
  }
  location.reload();
}
