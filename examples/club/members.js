/**
 * The members of one space: their pictures in the header, which of them are present, and the dialog
 * that changes the membership. Somebody who closes the page or loses the connection disappears
 * within seconds.
 */
import {
  avatar,
  h,
  keepInStep,
  openDialog,
  paintAvatar,
  say,
  sayFailure,
  setText,
} from "./elements.js";

export class Members {
  rows = [];
  /** The states of the tabs of everybody who is present in the space, by person. */
  here = new Map();
  onPresence = () => undefined;
  #db;
  #me;
  #space;
  #button;
  #live;
  #presence;
  #dialog;
  #items;

  constructor({ button, db, me, space }) {
    this.#db = db;
    this.#me = me;
    this.#space = space;
    this.#button = button;
    button.addEventListener("click", () => void this.#openDialog().catch(sayFailure));
    this.#live = db.live(
      `SELECT m.user_id, p.name FROM club.members m JOIN club.people p ON p.user_id = m.user_id
        WHERE m.space = $1`,
      {
        params: [space.id],
        orderBy: "name, user_id",
        onRows: (rows) => this.#take(rows),
        onError: sayFailure,
      },
    );
    this.#presence = db.presence(String(space.id), {
      table: "club.presence",
      state: {},
      onChange: (people) => {
        this.here = new Map(people.map(({ person, states }) => [person, states]));
        this.#render();
        this.onPresence();
      },
      // Somebody who is no longer a member is refused, and their space closes automatically.
      onError: (error) => error.code === "PERMISSION_DENIED" || sayFailure(error),
    });
  }

  /** Tells the others what happens in this tab, as in `{ typing: true }`. */
  tell(state) {
    this.#presence.set(state);
  }

  close() {
    this.#live.close();
    void this.#presence.leave();
    this.#dialog?.close();
  }

  #take(rows) {
    this.rows = rows;
    this.#render();
  }

  get #isOwner() {
    return this.#space.owner === this.#me.id;
  }

  #render() {
    const names = this.rows.map((row) => this.#nameOf(row)).join(", ");
    this.#button.setAttribute("aria-label", `Members: ${names}`);
    const paint = (face, row) => {
      paintAvatar(face, row);
      face.classList.toggle("here", this.here.has(row.user_id));
    };
    keepInStep(this.#button, this.rows.slice(0, 6), {
      key: (row) => row.user_id,
      make: avatar,
      update: paint,
    });
    if (this.#items === undefined) return;
    keepInStep(this.#items, this.rows, {
      key: (row) => row.user_id,
      make: (row) =>
        h(
          "li",
          { class: "row" },
          avatar(row),
          h("span", { class: "name" }),
          h("span", { class: "gap" }),
          this.#removal(row),
        ),
      update: (item, row) => {
        paint(item.children[0], row);
        const isOwner = row.user_id === this.#space.owner;
        setText(item.children[1], `${this.#nameOf(row)}${isOwner ? " · owner" : ""}`);
      },
    });
  }

  #nameOf({ name, user_id: id }) {
    return this.here.has(id) ? `${name} (here)` : name;
  }

  #removal({ name, user_id: id }) {
    if (!this.#isOwner || id === this.#me.id) return undefined;
    const remove = () =>
      this.#db
        .execute("DELETE FROM club.members WHERE space = $1 AND user_id = $2", {
          params: [this.#space.id, id],
        })
        .catch(sayFailure);
    return h(
      "button",
      { type: "button", "aria-label": `Remove ${name}`, onclick: () => void remove() },
      "Remove",
    );
  }

  async #openDialog() {
    this.#items = h("ul", { class: "stack" });
    this.#dialog = h(
      "dialog",
      { "aria-labelledby": "members-title" },
      h("h2", { id: "members-title" }, "Members"),
      this.#items,
      this.#isOwner ? await this.#adding() : undefined,
      h(
        "div",
        { class: "row" },
        h("button", { type: "button", onclick: () => this.#dialog.close() }, "Close"),
        h("span", { class: "gap" }),
        this.#end(),
      ),
    );
    this.#render();
    openDialog(this.#dialog);
  }

  /** The owner deletes the space for all, and any other member leaves it. */
  #end() {
    const [word, sql, params] = this.#isOwner
      ? ["Delete the space", "DELETE FROM club.spaces WHERE id = $1", [this.#space.id]]
      : [
          "Leave the space",
          "DELETE FROM club.members WHERE space = $1 AND user_id = $2",
          [this.#space.id, this.#me.id],
        ];
    const button = h(
      "button",
      { type: "button", class: "danger", onclick: () => void end() },
      word,
    );
    const end = async () => {
      if (button.dataset.asked !== undefined) {
        await this.#db.execute(sql, { params }).catch(sayFailure);
        return;
      }
      button.dataset.asked = "yes";
      button.textContent = `${word}: really?`;
    };
    return button;
  }

  async #adding() {
    const others = await this.#db.query(
      "SELECT user_id, name FROM club.people ORDER BY name LIMIT 500",
    );
    const who = h("input", {
      name: "who",
      list: "everybody",
      placeholder: "User name",
      "aria-label": "User name of a new member",
      autocomplete: "off",
      autocapitalize: "none",
      required: true,
    });
    const add = async (event) => {
      event.preventDefault();
      const text = who.value.trim();
      event.target.reset();
      const named = others.filter((each) => each.name === text);
      const isId = others.some((each) => each.user_id === text);
      const user = !isId && named.length === 1 ? named[0].user_id : text;
      try {
        await this.#db.execute("INSERT INTO club.members (space, user_id) VALUES ($1, $2)", {
          params: [this.#space.id, user],
        });
      } catch (error) {
        if (error?.reason === "foreign_key") say(`Nobody here is called “${text}”.`);
        else if (error?.reason === "duplicate_key") say(`“${text}” is already a member.`);
        else sayFailure(error);
      }
    };
    const options = others.map(({ name, user_id: id }) => h("option", { value: id }, name));
    return h(
      "form",
      { class: "row", onsubmit: (event) => void add(event) },
      who,
      h("datalist", { id: "everybody" }, options),
      h("button", { class: "primary" }, "Add"),
    );
  }
}
