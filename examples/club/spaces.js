/**
 * The spaces of a person. The list is a live query on a table with policies: a space appears when
 * somebody adds this person as a member, and disappears at the moment when the membership ends.
 */
import { h, keepInStep, say, sayFailure, setText } from "./elements.js";
import { Members } from "./members.js";

export class Spaces {
  list = h("nav", { class: "spaces", "aria-label": "Spaces" });
  #items = h("ul", {});
  #db;
  #me;
  #view;
  #open;
  #rows;
  #shown;
  /** A newly created space whose row may not have arrived yet. */
  #made;
  #close = () => undefined;
  #badges = new Map();

  constructor({ db, me, open, view }) {
    this.#db = db;
    this.#me = me;
    this.#view = view;
    this.#open = open;
    const name = h("input", {
      name: "name",
      placeholder: "New space",
      "aria-label": "Name of a new space",
      autocomplete: "off",
      maxlength: 60,
      required: true,
    });
    const add = async (event) => {
      event.preventDefault();
      const text = name.value.trim();
      if (text === "") return;
      event.target.reset();
      await this.#make(text).catch(sayFailure);
    };
    const form = h(
      "form",
      { class: "row", onsubmit: (event) => void add(event) },
      name,
      h("button", { "aria-label": "Create the space", title: "Create the space" }, "+"),
    );
    this.list.append(h("h2", {}, "Spaces"), this.#items, form);
  }

  start() {
    this.#db.live("SELECT id, name, owner FROM club.spaces", {
      orderBy: "name, id",
      onRows: (rows) => this.#take(rows),
      onError: sayFailure,
    });
    addEventListener("hashchange", () => this.#showChosen());
    addEventListener("keydown", (event) => {
      if (event.altKey && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
        event.preventDefault();
        this.#step(event.key === "ArrowDown" ? 1 : -1);
      }
    });
  }

  showBadges(numbers) {
    this.#badges = numbers;
    this.#render();
  }

  /**
   * Creates a space and its first member in one transaction, so that there is never a space without
   * a member.
   */
  async #make(name) {
    const id = await this.#db.transaction(async (tx) => {
      const [space] = await tx.query("INSERT INTO club.spaces (name) VALUES ($1) RETURNING id", [
        name,
      ]);
      await tx.execute("INSERT INTO club.members (space, user_id) VALUES ($1, CURRENT_USER())", {
        params: [space.id],
      });
      return space.id;
    });
    this.#made = String(id);
    location.hash = this.#made;
    this.#showChosen();
  }

  #take(rows) {
    const before = this.#shown;
    this.#rows = rows;
    this.#render();
    const isGone = before !== undefined && !rows.some((row) => String(row.id) === before.id);
    if (isGone) {
      say(`“${before.name}” is no longer open to you.`);
      history.replaceState(null, "", location.pathname);
    }
    this.#showChosen();
  }

  #render() {
    const chosen = location.hash.slice(1);
    keepInStep(this.#items, this.#rows ?? [], {
      make: ({ id }) =>
        h("li", {}, h("a", { href: `#${id}` }, h("span", { class: "name" }), badge())),
      update: (item, { id, name }) => {
        const [link] = item.children;
        const [label, number] = link.children;
        setText(label, name);
        const count = this.#badges.get(String(id)) ?? 0;
        setText(number, count === 0 ? "" : String(count));
        if (String(id) === chosen) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      },
    });
  }

  #step(by) {
    const rows = this.#rows ?? [];
    const index = rows.findIndex((row) => String(row.id) === location.hash.slice(1));
    const next = rows.at((index + by + rows.length) % Math.max(rows.length, 1));
    if (next !== undefined) location.hash = String(next.id);
  }

  /** Shows the space that the address specifies, or otherwise the first one. */
  #showChosen() {
    if (this.#rows === undefined) return;
    const chosen = location.hash.slice(1);
    const isThere = this.#rows.some((row) => String(row.id) === chosen);
    if (chosen === this.#made && !isThere) return;
    this.#made = undefined;
    const space = this.#rows.find((row) => String(row.id) === chosen) ?? this.#rows[0];
    if (space !== undefined && String(space.id) !== chosen) {
      history.replaceState(null, "", `#${space.id}`);
    }
    const id = space === undefined ? undefined : String(space.id);
    const isOther = this.#shown?.id !== id || this.#view.childElementCount === 0;
    this.#shown = space === undefined ? undefined : { id, name: space.name };
    this.#render();
    if (isOther) this.#begin(space);
    else if (space !== undefined) setText(this.#view.querySelector("h2"), space.name);
  }

  #begin(space) {
    this.#close();
    this.#close = () => undefined;
    this.#view.replaceChildren();
    if (space === undefined) {
      this.#view.append(
        h(
          "div",
          { class: "empty" },
          h("h2", {}, "No space yet"),
          h("p", {}, "Create one, or ask somebody to add you to theirs."),
        ),
      );
      return;
    }
    const people = h("button", { type: "button", class: "people", title: "Members" });
    const content = h("div", { class: "content" });
    this.#view.append(
      h("header", { class: "head" }, h("h2", {}, space.name), h("span", { class: "gap" }), people),
      content,
    );
    const members = new Members({ db: this.#db, me: this.#me, space, button: people });
    const close = this.#open({ db: this.#db, me: this.#me, space, view: content, members });
    this.#close = () => {
      members.close();
      close();
    };
  }
}

function badge() {
  return h("span", { class: "badge" });
}
