/**
 * Starts the page. This chunk contains everything needed before login. The editor, the grid and
 * the live view are loaded with the first screen that shows them.
 */
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app.tsx";
import { applyTheme, storedTheme } from "./settings.ts";
import "./style.css";
import "./workbench.css";
import "./rights.css";

applyTheme(storedTheme());
const root = document.getElementById("root");
if (root === null) throw new Error("Cannot start the page: the document has no #root element");
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
