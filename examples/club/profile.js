/** What people change about themselves: the name that others see. Also the way out. */
import { leave } from "./app.js";
import { h, openDialog, sayFailure } from "./elements.js";

export async function openProfileDialog({ db, me }) {
  const [person] = await db.query("SELECT name FROM club.people WHERE user_id = $1", [me.id]);
  const name = h("input", { name: "name", required: true, maxlength: 40, value: person?.name });
  const save = async (event) => {
    event.preventDefault();
    const params = [name.value.trim(), me.id];
    try {
      await db.execute("UPDATE club.people SET name = $1 WHERE user_id = $2", { params });
      dialog.close();
    } catch (error) {
      sayFailure(error);
    }
  };
  const dialog = h(
    "dialog",
    { "aria-labelledby": "profile-title" },
    h("h2", { id: "profile-title" }, "You"),
    h(
      "form",
      { class: "stack", onsubmit: (event) => void save(event) },
      h("label", {}, "Name that others see", name),
      h(
        "div",
        { class: "row" },
        h("button", { class: "primary" }, "Save"),
        h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
        h("span", { class: "gap" }),
        h("button", { type: "button", class: "danger", onclick: () => void leave() }, "Log out"),
      ),
    ),
  );
  openDialog(dialog);
  name.select();
}
