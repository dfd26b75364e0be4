/**
 * The things that people can change about themselves: the name that others see, and for a guest a
 * login, which keeps the account and everything in it. It also offers the logout.
 */
import { leave } from "./app.js";
import { h, messageOf, openDialog, say } from "./elements.js";

export async function openProfileDialog({ db, me }) {
  const [person] = await db.query("SELECT name FROM club.people WHERE user_id = $1", [me.id]);
  const [account] = await db.query("SELECT auth_type FROM system.my_account");
  const isGuest = account.auth_type === "guest";
  const name = h("input", { name: "name", required: true, maxlength: 40, value: person?.name });
  const password = h("input", {
    name: "password",
    type: "password",
    required: true,
    autocomplete: "new-password",
  });
  const fault = h("p", { class: "fault", role: "alert" });
  const save = async (event) => {
    event.preventDefault();
    const text = name.value.trim();
    fault.textContent = "";
    try {
      if (isGuest) await db.account.signUp({ user: text, password: password.value });
      const params = [text, me.id];
      await db.execute("UPDATE club.people SET name = $1 WHERE user_id = $2", { params });
      if (isGuest) say(`You can log in as “${text}” from now on.`);
      dialog.close();
    } catch (error) {
      if (error?.name !== "ServerError" && error?.name !== "ConnectionError") throw error;
      fault.textContent = messageOf(error);
    }
  };
  const dialog = h(
    "dialog",
    { "aria-labelledby": "profile-title" },
    h("h2", { id: "profile-title" }, isGuest ? "You are a guest" : "You"),
    isGuest &&
      h("p", {}, "With a name and a password, you keep this account and everything in it."),
    h(
      "form",
      { class: "stack", onsubmit: (event) => void save(event) },
      h("label", {}, isGuest ? "Name" : "Name that others see", name),
      isGuest && h("label", {}, "Password", password),
      fault,
      h(
        "div",
        { class: "row" },
        h("button", { class: "primary" }, isGuest ? "Create account" : "Save"),
        h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
        h("span", { class: "gap" }),
        h("button", { type: "button", class: "danger", onclick: () => void leave() }, "Log out"),
      ),
    ),
  );
  openDialog(dialog);
  name.select();
}
